"""The keys that are planted: fifty, each of its own form, and where each lies."""

from collections.abc import Callable
from random import Random

from msgspec import Struct

LETTERS = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
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
NAMED = ("TOOL_TOKEN", "TOOL_PASSWORD", "BUILD_SECRET", "DEPLOY_KEY")
"""What the team file passes on to the member called tool."""
PRIVATE = (
    *("DATABASE_PASSWORD", "STRIPE_SECRET_KEY", "GITHUB_TOKEN", "NPM_TOKEN", "SLACK_TOKEN", "DJANGO_SECRET_KEY"),
    *("SENTRY_AUTH_TOKEN", "TWILIO_API_SECRET", "PGPASSWORD", "SMTP_PASSWORD", "MY_COMPANY_API_KEY", "VAULT_TOKEN"),
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
    keys.append(Key(value=secret("{}"), is_said=True))
    while len(keys) < KEYS:
        # Known by its form, or by the words around it.
        form, shape = random.choice(
            [(form, "using {} now") for form in FORMS] + [("{}", shape) for shape in SHAPES[1:]]
        )
        keys.append(Key(value=secret(form), printed_by=ON_STDERR[len(keys) % len(ON_STDERR)], shape=shape))
    return keys


def _maker(random: Random) -> Callable[[str], str]:
    return lambda form: form.format("".join(random.choices(LETTERS, k=28)))
