"""The keys that are planted: sixty, each of its own form, and where each lies."""

import html
import string
from collections.abc import Callable
from random import Random
from typing import Literal
from urllib.parse import quote

from msgspec import Struct

from bullpen.agents.transcript import STDERR_TAIL_BYTES

# All of base64, of base64 for addresses, and of addresses: RFC 3986, unreserved and reserved, and "%".
ALPHABET = string.ascii_letters + string.digits + "+/=" + "-._~" + ":/?#[]@!$&'()*+,;=" + "%"
FIRST = "/.~"
"""What a path may begin with. Every third key that is no vendor's begins so too."""
LETTERS = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Of which vendors make their keys."""
FORMS: tuple[str, ...] = (
    "-".join(("sk", "ant", "api03", "{}")),
    "sk-proj-{}",
    "ghp_{}",
    "sk_live_{}",
    "xoxb-{}",
    "hf_{}",
    "glpat-{}",
)

PASSED = {
    "max": (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
    ),
    "cody": ("OPENAI_API_KEY", "CODEX_API_KEY", "AZURE_OPENAI_API_KEY"),
}
"""What an agent's own CLI documents."""
NAMED = ("TOOL_TOKEN", "TOOL_PASSWORD", "BUILD_AUTH", "DEPLOY_KEY")
"""What the team file passes on to the member called tool."""
PRIVATE = (
    *("DATABASE_PASSWORD", "STRIPE_SECRET_KEY", "GITHUB_TOKEN", "NPM_TOKEN", "SLACK_TOKEN", "DJANGO_SECRET_KEY"),
    *("SENTRY_AUTH_TOKEN", "TWILIO_API_SECRET", "PGPASSWORD", "SMTP_PASSWORD", "MY_COMPANY_API_KEY", "VAULT_TOKEN"),
    *("REDISCLI_AUTH", "MYSQL_PWD"),
)
FILES = (
    ".env",
    ".netrc",
    "id_rsa",
    "secrets.toml",
    "config/production.env",
    ".npmrc",
    "notes.txt",
    "../home/.aws/credentials",
)
SHAPES = (
    "Error: {} was refused",
    "password={}",
    'request failed: {{"api_key": "{}"}}',
    "Authorization: Bearer {}",
    "cannot reach postgres://admin:{}@db.example/x",
    "token: {}",
)
ON_STDERR = ("max", "cody", "tool", "hanger", "quitter")
CUTTERS = ("cutter", "clipper", "trimmer")
"""Of what these print, the last lines that are kept would begin within a key."""
KEYS = 62


class Key(Struct, frozen=True, kw_only=True):
    """A secret, and where it is planted."""

    value: str
    variable: str = ""
    file: str = ""
    parts: tuple[str, ...] = ()
    """What may not be found; itself if there are none."""
    printed_by: str = ""
    """The agent that writes it to a stream."""
    stream: Literal["error", "output"] = "error"
    printed_as: str = ""
    """Its other spelling there."""
    shape: str = "{}"
    """The words around it there."""
    is_said: bool = False
    given_to: tuple[str, ...] = ()
    """The agents that find it in their environment."""

    def is_in(self, data: bytes) -> bytes:
        """Return how it is spelled in a file, if it is there: as it is, or as a page or an address has it."""
        for part in self.parts or (self.value,):
            for spelling in (part, html.escape(part), quote(part), quote(part, safe="")):
                if spelling.encode() in data:
                    return spelling.encode()
        return b""

    @property
    def printed(self) -> str:
        """What its agent writes."""
        written = self.shape.format(self.printed_as or self.value) + "\n"
        noise = "x y z\n" * STDERR_TAIL_BYTES
        return written + (noise[: STDERR_TAIL_BYTES - len(written) // 2] if self.printed_by in CUTTERS else "")

    @property
    def where(self) -> str:
        """Where it comes from, for people."""
        printed = f", on the standard {self.stream} of {self.printed_by}" if self.printed_by else ""
        return f"{self.variable or self.file or 'a key'}{printed}"


def made_keys(random: Random) -> list[Key]:
    """Return the keys, new for every seed."""
    secret = _maker(random)
    keys = [
        Key(value=secret(random.choice(("{}", *FORMS))), variable=variable, given_to=(member,), printed_by=member)
        for member, variables in PASSED.items()
        for variable in variables
    ]
    keys += [
        Key(value=secret("{}"), variable=variable, given_to=("tool",), printed_by="tool", shape=random.choice(SHAPES))
        for variable in NAMED
    ]
    keys += [Key(value=secret(random.choice(("{}", *FORMS))), variable=variable) for variable in PRIVATE]
    keys += [Key(value=secret("{}"), file=file) for file in FILES]
    # As it is said, and not as a page shows it: only letters.
    keys.append(Key(value="".join(random.choices(LETTERS, k=28)), is_said=True))
    keys += _awkward_keys(random)
    while len(keys) < KEYS:
        # Known by its form, or by the words around it.
        form, shape = random.choice(
            [(form, "using {} now") for form in FORMS] + [("{}", shape) for shape in SHAPES[1:]]
        )
        keys.append(Key(value=secret(form), printed_by=ON_STDERR[len(keys) % len(ON_STDERR)], shape=shape))
    return keys


def _awkward_keys(random: Random) -> list[Key]:
    """Return keys with spaces, quotation marks and lines, in other spellings, on standard output and cut in two."""

    def word(length: int = 12) -> str:
        return "".join(random.choices(LETTERS, k=length))

    def words() -> tuple[str, ...]:
        return tuple(word() for _ in range(5))

    def private_key(name: str, header: str = "") -> tuple[str, tuple[str, ...]]:
        lines = tuple(word(64) for _ in range(24))
        return "\n".join(
            (f"-----BEGIN {name}-----", *([header, ""] if header else []), *lines, f"-----END {name}-----")
        ), lines

    def of_lines(name: str, printed_by: str, header: str = "", variable: str = "") -> Key:
        value, lines = private_key(name, header)
        return Key(value=value, parts=lines, printed_by=printed_by, variable=variable)

    phrase, mail, single, double = words(), words(), words(), words()
    smtp = f"{word()}@{word()}/{word()}"
    return [
        Key(value=" ".join(phrase), parts=phrase, variable="GPG_PASSPHRASE", printed_by="cutter"),
        of_lines("PRIVATE KEY", "clipper", variable="SIGNING_PRIVATE_KEY"),
        of_lines("PGP PRIVATE KEY BLOCK", "trimmer"),
        of_lines("RSA PRIVATE KEY", "tool", header="Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF"),
        of_lines("PGP PRIVATE KEY BLOCK", "quitter"),
        Key(value="\\' ".join(single), parts=single, printed_by="hanger", shape="password = '{}'"),
        Key(value='\\" '.join(double), parts=double, printed_by="quitter", shape='refused: {{"secret": "{}", "a": 1}}'),
        Key(
            value=smtp,
            parts=(smtp, lower := smtp.replace("@", "%40").replace("/", "%2f")),
            printed_as=lower,
            variable="SMTP_PASS",
            printed_by="cody",
        ),
        Key(value=word(24), printed_by="tool", shape="cannot fetch https://{}@example.org/x.git"),
        Key(value=f"sk-proj-{word(28)}", printed_by="max", stream="output", shape="Error: {} was refused"),
        Key(value=" ".join(mail), parts=mail, variable="MAIL_PASSWORD", printed_by="cody", stream="output"),
        Key(value=word(24), printed_by="max", stream="output", shape='{{"type": "new", "password": "{}"}}'),
    ]


def _maker(random: Random) -> Callable[[str], str]:
    def secret(form: str) -> str:
        if form != "{}":
            return form.format("".join(random.choices(LETTERS, k=28)))
        # Not a quotation mark: where such a word ends nobody can tell.
        first = random.choice(FIRST) if random.random() < 1 / 3 else random.choice(ALPHABET.replace("'", ""))
        return first + "".join(random.choices(ALPHABET, k=27))

    return secret
