"""Secrets that a program prints when it fails are kept from everybody else."""

import string

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
    ],
)
def test_secrets_of_a_known_form(secret: str) -> None:
    assert without_secrets(f"Error: {secret} was refused", {}) == f"Error: {MASK} was refused"


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
        ("password='ab'cdefgh rest", f"password={MASK} rest"),
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


def test_the_values_of_our_own_variables() -> None:
    environment = {"DB_PASSWORD": "correct horse", "EDITOR": "correct", "API_KEY": "seven77"}

    assert without_secrets("correct horse, correct, seven77", environment) == f"{MASK}, correct, seven77"
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
    ],
)
def test_what_is_no_secret_stays(said: str) -> None:
    assert without_secrets(said, {}) == said
