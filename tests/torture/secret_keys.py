"""The keys that are planted: fifty, each of its own form, and where each lies."""

import html
import string
from collections.abc import Callable
from random import Random
from urllib.parse import quote

from msgspec import Struct

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
KEYS = 50


class Key(Struct, frozen=True, kw_only=True):
    """A secret, and where it is planted."""

    value: str
    variable: str = ""
    file: str = ""
    printed_by: str = ""
    """The agent that writes it to standard error."""
    shape: str = "{}"
    """The words around it there."""
    is_said: bool = False
    given_to: tuple[str, ...] = ()
    """The agents that find it in their environment."""

    def is_in(self, data: bytes) -> bytes:
        """Return how it is spelled in a file, if it is there: as it is, or as a page or an address has it."""
        spellings = (self.value, html.escape(self.value), quote(self.value), quote(self.value, safe=""))
        return next((one for spelling in spellings if (one := spelling.encode()) in data), b"")

    @property
    def where(self) -> str:
        """Where it comes from, for people."""
        printed = f", on the standard error of {self.printed_by}" if self.printed_by else ""
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
    while len(keys) < KEYS:
        # Known by its form, or by the words around it.
        form, shape = random.choice(
            [(form, "using {} now") for form in FORMS] + [("{}", shape) for shape in SHAPES[1:]]
        )
        keys.append(Key(value=secret(form), printed_by=ON_STDERR[len(keys) % len(ON_STDERR)], shape=shape))
    return keys


def _maker(random: Random) -> Callable[[str], str]:
    def secret(form: str) -> str:
        if form != "{}":
            return form.format("".join(random.choices(LETTERS, k=28)))
        # Not a quotation mark: where such a word ends nobody can tell.
        first = random.choice(FIRST) if random.random() < 1 / 3 else random.choice(ALPHABET.replace("'", ""))
        return first + "".join(random.choices(ALPHABET, k=27))

    return secret
