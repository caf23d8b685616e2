"""What one CLI is, as data: everything in which the agents differ."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct

from bullpen.context.assemblers import ContextAssembler
from bullpen.turn_events import Event, FailureKind

Permission = Literal["read-only", "edit", "full"]
Emit = Callable[[Event], None]


class StreamParser(Protocol):
    """Turns the records of one turn into events; a Finished or Failed among them is the CLI's own word on the turn."""

    def parse(self, record: Any) -> Iterable[Event]:
        """Return what a record says: a JSON object, or a piece of text from agents that speak plain text."""
        ...


class SignInProbe(Struct, frozen=True, kw_only=True):
    """The cheapest evidence that a CLI is signed in: no request to a model."""

    arguments: tuple[str, ...] = ()
    """A command of the CLI that exits with 0 when a login is stored. Empty: there is none."""
    variables: tuple[str, ...] = ()
    """Any of these in the environment is a key; with "=true" only if it has that value."""
    files: tuple[str, ...] = ()
    """Any of these, below the home folder, is a stored login."""


class AgentSpec(Struct, frozen=True, kw_only=True):
    """One CLI: how to start it, what it may do, how to read it, and what to tell people about it."""

    name: str
    aliases: tuple[str, ...] = ()
    command: tuple[str, ...]
    """The program and the arguments it always gets; the prompt goes to its standard input."""
    last_arguments: tuple[str, ...] = ()
    """What must stand at the very end."""
    assembler: type[ContextAssembler]
    parser: Callable[[], StreamParser]
    stream: Literal["json", "text"] = "json"
    prompt: Literal["text", "message"] = "text"
    """How the prompt is written: as it is, or as a message in JSON. After a message the input stays open until the CLI
    has said its last word: it ends only when its input does, so nothing it wrote can be lost at its exit."""
    system_file_flag: str | None = None
    """For the path of a file with the system text. None: the assembler puts the text into the prompt."""
    model_flag: str | None = None
    instruction_file: str | None = None
    """The file that the CLI's users keep instructions in."""
    permissions: Mapping[Permission, tuple[str, ...]]
    max_prompt_bytes: int | None = None
    """What the CLI takes on standard input, where it has a limit of its own."""
    environment: tuple[str, ...] = ()
    """Variables its documentation names, passed on if set; a trailing * stands for any ending."""
    settings: Mapping[str, str] = {}
    """Variables it always gets."""
    failures: tuple[tuple[FailureKind, str], ...] = ()
    """Patterns in this CLI's own words, tried before the common ones."""
    exit_codes: Mapping[int, FailureKind] = {}
    """Exit codes with a meaning of their own."""
    hints: Mapping[FailureKind, str] = {}
    """What to do next, where this CLI needs other words than the common ones."""
    version_arguments: tuple[str, ...] = ("--version",)
    tested_versions: tuple[str, ...] = ()
    sign_in: SignInProbe = SignInProbe()

    @property
    def program(self) -> str:
        """The name of the program."""
        return self.command[0]

    def arguments(self, permission: Permission, model: str | None) -> list[str]:
        """Return the command line for a turn, up to what depends on the turn itself."""
        if permission not in self.permissions:
            raise ValueError(f"permissions must be one of {', '.join(self.permissions)}, not {permission!r}")
        if model is not None and model.startswith("-"):
            raise ValueError(f"{model!r} is no name of a model: it would be taken for an option")
        model_arguments = [self.model_flag, model] if self.model_flag and model else []
        return [*self.command[1:], *self.permissions[permission], *model_arguments]
