"""AgentSpec: everything that differs between CLIs, as data."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from bullpen.agents.driver import Driver, Opening
from bullpen.agents.folder_settings import NO_SETTINGS, FolderSettings
from bullpen.context.assemblers import ContextAssembler
from bullpen.memory import SessionUse
from bullpen.permissions import Permission
from bullpen.sandbox.rules import NOTHING_OWN, OwnFiles
from bullpen.text.plain_commands import is_plain_command
from bullpen.turn_events import Event, FailureKind

Emit = Callable[[Event], None]


class StreamParser(Protocol):
    """Turns the records of one turn into events; Finished or Failed is the CLI's own verdict on the turn."""

    def parse(self, record: Any) -> Iterable[Event]:
        """Return the events of a record: a JSON object, or a piece of text if the stream is plain text."""
        ...


class SignInProbe(Struct, frozen=True, kw_only=True):
    """The cheapest evidence that a CLI is signed in: no request to a model."""

    arguments: tuple[str, ...] = ()
    """A command of the CLI that exits with 0 when a login is stored. Empty: there is none."""
    variables: tuple[str, ...] = ()
    """Environment variables that hold a key; one with "=true" counts only with that value."""
    files: tuple[str, ...] = ()
    """Files in the home folder that hold a login."""
    remarks: Mapping[str, str] = {}
    """What to know of one of these, by its name."""
    is_complete: bool = True
    """Whether nobody is signed in where none of these is found."""
    other_models: tuple[str, str] | None = None
    """A settings file in the home folder, and the word in it that names other models, which need no login."""


class AllowRules(Struct, frozen=True, kw_only=True):
    """How a CLI is told which commands may run without being asked."""

    flag: str
    """The option that takes all rules, separated by commas."""
    rules: tuple[str, ...]
    """The rules for one command, where {} is the command: alone, and with more arguments."""
    other_arguments: tuple[str, ...] = ()
    permissions: tuple[Permission, ...] = ("read-only", "edit")
    """The permissions that still hold with these rules. With full permissions every command may run anyway."""

    def arguments(self, commands: Sequence[str]) -> tuple[str, ...]:
        """Return the arguments that allow these commands."""
        for command in commands:
            if not is_plain_command(command):
                raise ValueError(f"{command!r} cannot be allowed: it is not a command in plain words")
        rules = [rule.format(command) for command in commands for rule in self.rules]
        return (self.flag, ",".join(rules), *self.other_arguments)


_MODEL = re.compile(r"(?!-)[^\s\0](?:[^\r\n\0]*[^\s\0])?")
_SESSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]*")
UNKNOWN_SESSIONS = "bullpen does not know whether its program keeps sessions"


def check_model(name: str) -> None:
    """Raise ValueError if a CLI could read the name of a model as anything else."""
    if name.startswith("-"):
        raise ValueError(f"{name!r} is not a model name: it would be read as an option")
    if not _MODEL.fullmatch(name):
        raise ValueError(f"{name!r} is not a model name: it must be one line without spaces around it")


class SessionSpec(Struct, frozen=True, kw_only=True):
    """How a CLI continues where its last turn ended. In all arguments {id} is the session's id."""

    start: tuple[str, ...] = ()
    """Begins a session with an id of ours. Empty: the CLI chooses the id, and says it when it starts."""
    resume: tuple[str, ...]
    fork: tuple[str, ...] = ()
    """Begins a session with the history of another, which stays as it is. Empty: the CLI cannot."""
    home: str
    """Where the CLI keeps its files, in the user's home folder."""
    home_variable: str
    """The environment variable that names another place."""
    files: str
    """The session's file in there, as a pattern with {id}. It is only ever appended to: each line is a record."""
    is_bound_to_folder: bool = True
    """Whether it is found only from the folder in which it began."""
    takes_other_model: bool = True
    """Whether another model can continue with it."""
    other_system: tuple[str, ...] = ()
    """Makes a session take another system text than the one it began with."""
    usage_adds_up: bool = False
    """Whether the use that is reported for a turn includes that of all turns before it."""
    is_proven: bool = True
    """Whether the model gets, after resuming, exactly what it got before. If not, no session is resumed."""
    shortened: tuple[str, ...]
    """What the file has in it, one of these, where the CLI has left out a part of the history or summed it up."""
    chosen_by: tuple[str, ...]
    """Arguments with which a person chooses a session: in a team file they could name somebody else's."""
    is_said: bool = False
    """Whether its driver says in which session a turn runs. If not, arguments do."""
    not_kept_with: tuple[str, ...] = ()
    """Arguments with which the CLI keeps no session."""
    most_tokens: int = 150_000
    """How large it may become if neither the team file nor the CLI says what its model can take in."""

    def arguments(self, use: SessionUse) -> tuple[str, ...]:
        """Return the arguments that make a turn run in a session."""
        if self.is_said:
            return ()
        if use.id and not _SESSION.fullmatch(use.id):
            raise ValueError(f"{use.id!r} is not the id of a session: it could be read as something else")
        by_origin = {"new": self.start, "rebuilt": self.start, "resumed": self.resume, "forked": self.fork}
        chosen = (*by_origin[use.origin], *(self.other_system if use.has_other_system else ()))
        return tuple(argument.format(id=use.id) for argument in chosen)


class AgentSpec(Struct, frozen=True, kw_only=True):
    """One CLI: how to start it, its permissions, how to read its output, and hints for people."""

    name: str
    aliases: tuple[str, ...] = ()
    command: tuple[str, ...]
    """The program and the arguments it always gets; the prompt goes to its standard input."""
    needs_command: bool = False
    """Whether only a team file can name its program: it is a way to speak with many, not a CLI."""
    last_arguments: tuple[str, ...] = ()
    """Arguments that must come last."""
    assembler: type[ContextAssembler]
    parser: Callable[[], StreamParser]
    driver: Callable[[Opening], Driver] | None = None
    """Speaks with the CLI in both directions, instead of the parser and the prompt on its input."""
    ends_by_itself: bool = True
    """Whether it exits after its final event when its input ends. If not, it is ended, and its exit code says nothing.
    """
    stream: Literal["json", "text"] = "json"
    reports: Literal["nothing", "tokens", "money"] = "tokens"
    """What it says of its use; money includes tokens. A limit can only count what is reported."""
    provider: str = ""
    """The vendor of its models, as OpenTelemetry names it."""
    system_file_flag: str | None = None
    """The option for the path of a file with the system text. None: the assembler puts the text into the prompt."""
    model_flag: str | None = None
    instruction_files: tuple[str, ...] = ("AGENTS.md",)
    """Its usual instruction files: of each folder it gets the first that there is."""
    reads_by_itself: Callable[[Permission, bool], Collection[str]] = lambda *_: ()
    """Returns which of them it reads itself with these permissions, with or without the settings of its folder. bullpen
    does not give it these again."""
    permissions: Mapping[Permission, tuple[str, ...]]
    allow: AllowRules | str = "bullpen cannot tell this CLI which commands may run"
    """How it is told which commands may run without being asked, or else why it is not told."""
    asking: "AgentSpec | None" = None
    """How it is run if people are asked before it does something: None, if it cannot ask."""
    rule_arguments: Callable[[Mapping[str, str], bool], tuple[str, ...]] = lambda *_: ()
    """Returns arguments so that rules of the user's own, for this CLI alone, allow nothing; for an environment, with or
    without the turn's tools."""
    why_not_asked: Callable[[Mapping[str, str]], str] = lambda _: ""
    """Returns why it would not ask for every command with this environment, and so is not run to ask; empty: it would.
    """
    tools: Callable[[Sequence[str]], tuple[str, ...]] | None = None
    """Returns the arguments that tell it of the MCP server with this command, for one run; None: it cannot be told."""
    max_prompt_bytes: int | None = None
    """The CLI's own limit for standard input, if it has one."""
    environment: tuple[str, ...] = ()
    """Documented environment variables, passed on if set; a trailing * matches any ending."""
    settings: Mapping[str, str] = {}
    """Environment variables that are always set."""
    failures: tuple[tuple[FailureKind, str], ...] = ()
    """Patterns for this CLI's own messages, tried before the common ones."""
    waits: str = ""
    """A pattern for what it writes to standard error before it asks its vendor again, with the milliseconds until then.
    """
    exit_codes: Mapping[int, FailureKind] = {}
    """Exit codes with a meaning of their own."""
    hints: Mapping[FailureKind, str] = {}
    """What to do next, where the common hints do not fit this CLI."""
    version_arguments: tuple[str, ...] = ("--version",)
    version_program: str = ""
    """A program beside its own that reports the same version in a fraction of the time."""
    tested_versions: tuple[str, ...] = ()
    sign_in: SignInProbe = SignInProbe()
    folder_settings: FolderSettings = NO_SETTINGS
    """What it reads of a folder's settings."""
    own_files: OwnFiles = NOTHING_OWN
    """What of a person's home folder is its own: a sandbox lets it write that."""
    sessions: SessionSpec | None = None
    """How it continues in a session of its own; None: every turn begins from nothing."""
    why_no_sessions: str = UNKNOWN_SESSIONS
    """Why there is no way to, in words that follow "because"."""

    @property
    def short_name(self) -> str:
        """What people call it, also in team files."""
        return (*self.aliases, self.name)[0]

    @property
    def program(self) -> str:
        """The name of the program."""
        return self.command[0]

    def with_permissions(self, permission: Permission) -> "AgentSpec":
        """Return how it is run with these permissions."""
        return self.asking if permission == "ask" and self.asking is not None else self

    def that_ran(self, command: Sequence[str]) -> "AgentSpec":
        """Return how it was run, by the command line of a turn."""
        if self.asking is None:
            return self
        own = {*self.asking.command[1:], *self.asking.permissions.get("ask", ())} - {*self.command[1:]}
        return self.asking if own and own <= {*command} else self

    def without_settings(self, folder: Path) -> "AgentSpec":
        """Return how it is run without the settings of a folder, as far as it can be."""
        leaving = self.folder_settings
        return replace(
            self,
            command=(*self.command, *leaving.arguments(folder)),
            permissions={**self.permissions, **leaving.permissions},
        )

    def with_settings(self, folder: Path) -> "AgentSpec":
        """Return how it is run with the settings of a folder, to which somebody has agreed."""
        return replace(self, command=(*self.command, *self.folder_settings.reading_arguments(folder)))

    def arguments(self, permission: Permission, model: str | None, allow: Sequence[str] = ()) -> list[str]:
        """Return the arguments for a turn, except those that depend on the turn itself."""
        if permission == "ask" and self.asking is not None:
            return self.asking.arguments(permission, model, allow)
        if permission == "ask" and permission not in self.permissions:
            others = ", ".join(self.permissions)
            raise ValueError(f"{self.short_name} cannot ask before it does something; permissions can be {others}")
        if permission not in self.permissions:
            raise ValueError(f"permissions must be one of {', '.join(self.permissions)}, not {permission!r}")
        if model is not None:
            check_model(model)
        model_arguments = [self.model_flag, model] if self.model_flag and model else []
        allow_arguments = self.allow_arguments(permission, allow)
        return [*self.command[1:], *self.permissions[permission], *allow_arguments, *model_arguments]

    def allow_arguments(self, permission: Permission, commands: Sequence[str]) -> tuple[str, ...]:
        """Return the arguments that allow these commands; none if that would change nothing, or too much."""
        if not commands or not isinstance(self.allow, AllowRules) or permission not in self.allow.permissions:
            return ()
        return self.allow.arguments(commands)
