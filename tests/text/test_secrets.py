"""Secrets that a program prints when it fails are kept from everybody else."""

import string
from base64 import b64encode

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from bullpen.text.secrets import MASK, without_secrets

# All of base64, of base64 for addresses, and of addresses: RFC 3986, unreserved and reserved, and "%".
ALPHABET = string.ascii_letters + string.digits + "+/=" + "-._~" + ":/?#[]@!$&'()*+,;=" + "%"
NAMES = [
    *("API_KEY", "GITHUB_TOKEN", "STRIPE_SECRET", "PGPASSWORD", "SOME_CREDENTIALS", "SESSION_COOKIE"),
    *(
        "REGISTRY_AUTH",
        "REDISCLI_AUTH",
        "NPM_CONFIG__AUTH",
        "AUTH",
        "npm_config_//registry/:_auth",
        "HTTP_AUTHORIZATION",
    ),
    *("DOCKER_AUTH_CONFIG", "DB_PASS", "MYSQL_PWD"),
]
secrets = st.text(ALPHABET, min_size=8, max_size=60)


@pytest.mark.parametrize(
    "secret",
    [
        "-".join(("sk", "ant", "api03", "0123456789abcdef")),
        "sk-proj-0123456789abcdef",
        "sk_live_0123456789abcdef",
        "ghp_0123456789abcdef0123",
        "github_pat_0123456789abcdef0123",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyA-0123456789abcdefghij",
        "xoxb-1234567890-abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: A\n\nMI\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nComment: ----\n\nlQOY\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----",
        "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nP2/56wAA\n---- END SSH2 ENCRYPTED PRIVATE KEY ----",
        "-----BEGIN PRIVATE KEY-----\\nMIIE-\\n-----END PRIVATE KEY-----",
    ],
)
def test_secrets_of_a_known_form(secret: str) -> None:
    assert without_secrets(f"Error: {secret} was refused", {}) == f"Error: {MASK} was refused"


def test_of_two_private_keys_what_is_between_them_stays() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----"

    assert without_secrets(f"{key} and {key}, tried", {}) == f"{MASK} and {MASK}, tried"
    assert without_secrets(f"{key} and {key[:40]}", {}) == f"{MASK} and {MASK}"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("password=hunter2hunter2 is wrong", f"password={MASK} is wrong"),
        ('{"api_key": "abcdef123456"}', f'{{"api_key": "{MASK}"}}'),
        ("MY_AUTH_TOKEN: abcdef123456", f"MY_AUTH_TOKEN: {MASK}"),
        ("Authorization: Bearer abcdef123456", f"Authorization: Bearer {MASK}"),
        ("postgres://me:hunter2@db/x", f"postgres://me:{MASK}@db/x"),
    ],
)
def test_secrets_that_a_word_announces(said: str, kept: str) -> None:
    assert without_secrets(said, {}) == kept


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("postgres://me:a/b+c=@db/x", f"postgres://me:{MASK}@db/x"),
        ("postgres://me:a?b#c@db/x", f"postgres://me:{MASK}@db/x"),
        ("postgres://me:a:b@c@db/x", f"postgres://me:{MASK}@db/x"),
        ("postgres://me:12/34@db/x", f"postgres://me:{MASK}@db/x"),
        ("redis://:hunter2@cache", f"redis://:{MASK}@cache"),
        ("amqp://a:b/c@d,amqp://e:f/g@h", f"amqp://a:{MASK}@d,amqp://e:{MASK}@h"),
        ('{"url":"http://a:b/c@d","to":"x@y.example"}', f'{{"url":"http://a:{MASK}@d","to":"x@y.example"}}'),
        ("password=ab,cd;ef&gh'ij.", f"password={MASK}."),
        ('{"password": "a b c d e"}', f'{{"password": "{MASK}"}}'),
        (r'{"body": "{\"token\": \"abcdef123456\"}"}', rf'{{"body": "{{\"token\": \"{MASK}"}}"}}'),
        (r'{"body": "{\"token\": \"ab\\\" cdef\", \"a\": 1}"}', rf'{{"body": "{{\"token\": \"{MASK}", \"a\": 1}}"}}'),
        (r'{"password": "ab\" cdef", "a": "b"}', f'{{"password": "{MASK}", "a": "b"}}'),
        (r"{'password': 'it\'s long', 'a': 'b'}", f"{{'password': '{MASK}', 'a': 'b'}}"),
        (r'password="ab\\" cdef', 'password="ab\\\\" cdef'),
        ('password="abcdef\\\nefgh', f'password="{MASK}\nefgh'),
        ("password='ab'cdefgh rest", f"password={MASK} rest"),
        ("https://0123456789abcdef@example.org/x", f"https://{MASK}@example.org/x"),
        ("at HTTP://abcdefgh@example.org", f"at HTTP://{MASK}@example.org"),
        ("https://abcdefg@example.org", "https://abcdefg@example.org"),
        ('password: "cut off at the end', f'password: "{MASK}'),
        ("password=abcdef", f"password={MASK}"),
        ("password=abcde", "password=abcde"),
        ('"password": "abcdef", "a"', f'"password": "{MASK}", "a"'),
        ('"password": "abcde", "a"', '"password": "abcde", "a"'),
        ("", ""),
        ("PGPASSWORD=/abcdefgh", f"PGPASSWORD={MASK}"),
        ("NPM_AUTH=/abcdefgh", f"NPM_AUTH={MASK}"),
        ("Authorization: token /abcdefgh", f"Authorization: token {MASK}"),
        ("Authorization: ~abcdefgh", f"Authorization: {MASK}"),
    ],
)
def test_a_password_may_contain_anything(said: str, kept: str) -> None:
    assert without_secrets(said, {}) == kept


def _basic(name_and_password: str) -> str:
    return b64encode(name_and_password.encode()).decode()


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (f"sent Basic {_basic('aladdin:opensesame')}", f"sent Basic {MASK}"),
        (f"basic {_basic('a:b')}, refused", f"basic {MASK}, refused"),
        (f"Basic {_basic('jörg:öäü')}", f"Basic {MASK}"),
        (f"Basic {_basic('a:b').rstrip('=')}", f"Basic {MASK}"),
        (f"Basic {_basic('me:hunter2hunter2')[:-3]}", f"Basic {MASK}"),
        (f'"Basic \\"{_basic("me:pass")}\\""', f'"Basic \\"{MASK}\\""'),
        (f"Basic {b64encode(b'me:' + b'?>' * 9, b'-_').decode()}", f"Basic {MASK}"),
        ("Basic q7Hd93kLmZx02PwvT", f"Basic {MASK}"),
        ("Authorization: Basic notbase64atall", f"Authorization: Basic {MASK}"),
        ("Basic password=hunter2hunter2", f"Basic password={MASK}"),
    ],
)
def test_a_name_and_password_after_basic(said: str, kept: str) -> None:
    assert without_secrets(said, {}) == kept


@pytest.mark.parametrize(
    "said",
    [
        "Warning: Basic terminal detected (TERM=dumb).",
        "Basic authentication is required",
        "a basic understanding, basic arithmetic; basic functionality",
        "Basic TypeScript, Basic HTTP2, Basic README.md, basic internationalization",
        "VISUAL BASIC APPLICATION",
        "basic a",
    ],
)
def test_basic_is_a_word_of_english_too(said: str) -> None:
    assert without_secrets(said, {}) == said


@given(st.text(min_size=1).filter(lambda name: ":" not in name and name.isprintable()), st.text(min_size=1))
def test_every_name_and_password_after_basic_is_masked(name: str, password: str) -> None:
    assume(password.isprintable())
    word = b64encode(f"{name}:{password}".encode()).decode()

    assert without_secrets(f"Basic {word}", {}) == f"Basic {MASK}"


def test_the_values_of_our_own_variables() -> None:
    environment = {"DB_PASSWORD": "correct horse", "EDITOR": "correct", "API_KEY": "seven77", "SORT_KEY": "fives"}

    assert without_secrets("correct horse, correct, seven77", environment) == f"{MASK}, correct, {MASK}"
    # A short one is only masked as a word of its own, and a very short one not at all.
    assert without_secrets("/seven77/seven777 fives", environment) == f"/{MASK}/seven777 fives"
    assert without_secrets("password=correct horse.", environment) == f"password={MASK}."


@given(st.sampled_from(NAMES), secrets)
@example("API_KEY", "/9j4AAQSkZJRgABA")
@example("API_KEY", "~9j4AAQSkZJRgABA")
@example("API_KEY", ".9j4AAQSkZJRgABA")
@example("API_KEY", "../AAQSkZJRgABA/")
@example("API_KEY", "12345678")
def test_a_value_is_masked_whatever_it_begins_with(name: str, value: str) -> None:
    assume(not value.endswith((".pem", ".json", ".key", ".env", ".txt", ".pub")))

    assert without_secrets(f"Error: {value} was refused", {name: value}) == f"Error: {MASK} was refused"


@given(secrets)
def test_a_value_within_an_address_is_masked(value: str) -> None:
    assume("://" not in value)

    assert without_secrets(f"at postgres://admin:{value}@db/x", {}) == f"at postgres://admin:{MASK}@db/x"


@given(secrets)
def test_the_password_of_an_address_is_masked_alone_too(value: str) -> None:
    assume("://" not in value)
    environment = {"DATABASE_URL": f"postgres://admin:{value}@db/x"}

    assert without_secrets(f"Error: {value} was refused", environment) == f"Error: {MASK} was refused"


@given(
    secrets, st.sampled_from(["password={}", "token: {}", '"api_key": "{}"', "Authorization: Bearer {}", "X_AUTH={}"])
)
def test_a_value_after_a_word_is_masked(value: str, shape: str) -> None:
    # Not what ends as a quotation does.
    assume("'" not in value and len(value.rstrip(".,;:!?)]}>")) >= 8)

    assert value not in without_secrets(shape.format(value), {})


@given(secrets, secrets, st.sampled_from(["{0}{1}", "{1}{0}", "{1}{0}{1}"]))
def test_of_two_secrets_one_part_of_the_other_nothing_is_left(inner: str, more: str, shape: str) -> None:
    outer = shape.format(inner, more)
    environment = {"A_SECRET": inner, "B_SECRET": outer}

    assert without_secrets(f"a {outer} b", environment) == f"a {MASK} b"
    assert without_secrets(f"a {outer} b", dict(reversed(environment.items()))) == f"a {MASK} b"


def test_another_spelling_of_a_value_is_masked() -> None:
    environment = {"API_KEY": '/ab"c\\d+e/f==\n'}

    for said in ('/ab"c\\d+e/f==', '/ab\\"c\\\\d+e/f==', "%2Fab%22c%5Cd%2Be%2Ff%3D%3D", "/ab%22c%5Cd%2Be/f%3D%3D"):
        assert without_secrets(f"a {said} b", environment) == f"a {MASK} b"


@pytest.mark.parametrize(
    "said",
    [
        "one 'twö/three\n four",
        "one%20%27tw%C3%B6/three%0A%20four",
        "one%20%27tw%c3%b6%2fthree%0a%20four",
        "one+%27tw%C3%B6%2Fthree%0A+four",
        r"one 'twö/three\n four",
        r"one 'tw\u00f6\/three\n four",
    ],
)
def test_a_value_with_spaces_is_masked_in_every_spelling(said: str) -> None:
    assert without_secrets(f"a {said} b", {"PASSPHRASE": "one 'twö/three\n four"}) == f"a {MASK} b"


def test_the_token_of_an_address_is_masked_alone_too() -> None:
    environment = {"GIT_REMOTE": "https://0123456789abcdef@example.org/x"}

    assert without_secrets("Error: 0123456789abcdef was refused", environment) == f"Error: {MASK} was refused"


KEY_LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKB"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("word rest", "rest"),
        ("orse battery staple was refused", " was refused"),
        ("battery staple", ""),
        ("staple was refused, staple", "was refused, staple"),
        ("battery charged", "charged"),
        ("horse battery st", ""),
        (f"cKB\n{KEY_LINE}\n{KEY_LINE}\nand more", "and more"),
        (f"cKB\n{KEY_LINE}\nab==\n-----END PRIVATE KEY-----\nand more", "\nand more"),
        ("Comment: x\n\nab==\n-----END PGP PRIVATE KEY BLOCK-----\nmore", "\nmore"),
        (f"a b\n-----BEGIN PRIVATE KEY-----\n{KEY_LINE}\n-----END PRIVATE KEY-----\nc", f"b\n{MASK}\nc"),
        (f"first\n{KEY_LINE * 2}\nlast", f"{KEY_LINE * 2}\nlast"),
    ],
)
def test_what_may_be_the_rest_of_a_secret_is_removed_from_a_cut_text(said: str, kept: str) -> None:
    environment = {"GPG_PASSPHRASE": "correct horse battery staple"}

    assert without_secrets(said, environment, is_cut=True) == kept


@given(secrets, st.data())
def test_no_end_of_a_value_is_left_in_a_cut_text(value: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(value) - 4))
    value = f"{value} {value[::-1]}"

    left = without_secrets(f"{value[cut:]} was refused", {"A_SECRET": value}, is_cut=True)
    assert left in ("was refused", " was refused")


def test_a_value_longer_than_a_cut_text_leaves_nothing() -> None:
    value = " ".join(f"word{number}" for number in range(100))

    assert without_secrets(value[50:100], {"A_SECRET": value}, is_cut=True) == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "/usr/local/bin:/usr/bin"),
        ("HOME", "/home/somebody"),
        ("PWD", "/home/somebody/project"),
        ("OLDPWD", "/home/somebody/other"),
        ("SSH_AUTH_SOCK", "/tmp/ssh-AbCdEf123/agent.42"),
        ("XAUTHORITY", "/home/somebody/.Xauthority"),
        ("SSH_ASKPASS", "/usr/bin/ksshaskpass"),
        ("GIT_AUTHOR_NAME", "Some Author"),
        ("OS_AUTH_URL", "https://keystone.example:5000/v3"),
        ("KEY_FILE", "/etc/ssl/private/server"),
        ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"),
        ("PASSWORD_STORE_DIR", "/home/somebody/.password-store"),
        ("TOKEN_PATH", "./state/token"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/home/somebody/service-account.json"),
        ("TLS_KEY", "/etc/ssl/server.pem"),
        ("DEPLOY_KEY", "~/.ssh/id_ed25519"),
        ("NPM_REGISTRY", "http://localhost:4873/@scope/name"),
    ],
)
def test_ordinary_places_and_names_stay(name: str, value: str) -> None:
    assert without_secrets(f"cannot use {value} here", {name: value}) == f"cannot use {value} here"


def test_a_name_that_promises_a_place_does_not_hide_a_secret() -> None:
    assert without_secrets("it is hunter2hunter2", {"TOKEN_FILE": "hunter2hunter2"}) == f"it is {MASK}"


@pytest.mark.parametrize(
    "said",
    [
        "401 Unauthorized",
        "token limit reached: 200000",
        "no such file: /home/a/.env",
        "task-sk-learn",
        "the key is wrong",
        "the token: none",
        "http://localhost:8080/node_modules/vue@3.4/x",
        "https://example.org:8443/users/@me",
        "http://[::1]:8080/@vite/client",
        "ssh://git@example.org:22/a/b@v1",
        "git@example.org:a/b",
        "somebody@example.org and http://example.org/",
        "https://example.org/somebody@example.org",
        "https://example.org?to=somebody@example.org",
        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        "-----BEGIN PGP PUBLIC KEY BLOCK-----\nMIIE\n-----END PGP PUBLIC KEY BLOCK-----",
    ],
)
def test_what_is_no_secret_stays(said: str) -> None:
    assert without_secrets(said, {}) == said
