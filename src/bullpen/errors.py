"""Every error bullpen raises on purpose, in one tree.

BullpenError
├── AgentFailed             an agent's turn that failed; carries the Failed event that ended it
│   ├── AgentNotInstalled
│   ├── AgentNotSignedIn
│   ├── QuotaExceeded
│   ├── AgentOverloaded
│   ├── PromptTooLong       for this CLI, however large the budget is
│   ├── TurnLimitReached
│   ├── PermissionRefused
│   ├── AgentCrashed
│   ├── AgentTimedOut
│   └── ProtocolBroken      nothing usable came
├── AmbiguousConversation   the beginning of a conversation id that fits several
├── CannotListen            no address to serve pages at
├── ConversationClosed      the conversation was closed in this process
├── ConversationInUse       another process owns the conversation, and is alive
├── InstructionFileProblem  a file with instructions for an agent that cannot be used
├── InvalidImport           a file that cannot become a conversation; nothing was written
├── InvalidSnapshot         a snapshot that cannot be loaded; nothing was changed
├── InvalidTeam             a team file that cannot be used, with everything that is wrong with it
├── MissingExtra            a door whose packages are not installed
├── NoConversations         there is no file of conversations yet
├── NoTeamFile              there is no team file of this name
├── NobodyToAsk             nobody who could answer was named
├── NotTrusted              a team file that nobody has agreed to run
├── NothingRuns             there is no running turn to cancel
├── NothingSaid             an empty message
├── NothingToDecide         no turn ended without a reply
├── OutputExists            a file that would be written over
├── PromptTooLarge          what may not be cut does not fit the byte budget; nothing was sent
├── ReadOnlyHere            a conversation that can be looked at, but not continued, from here
├── StoreConflict           what was asked of the store was done before, or by somebody else; nothing was changed
│   ├── ConversationExists
│   ├── MessageDiffers      the same message id with another content
│   ├── NotTheOwner         another process owns the conversation
│   └── TurnConflict        the turn is not in the state that was expected
├── StoreError              the file that conversations are kept in cannot be used; what was being done is not done
│   ├── NotAStore           it is something else
│   ├── StoreBusy           another process holds it for too long
│   ├── StoreDamaged
│   ├── StoreFailed         the disk or SQLite failed in another way
│   ├── StoreFull           there is no room to write
│   ├── StoreReadOnly       we may not write to it, or not even read it
│   └── StoreTooNew         a newer bullpen wrote it
├── UnknownAgent            an agent type that no module knows
├── UnknownCommand          a word behind a slash that is no command
├── UnknownConversation     a conversation id that the store does not have
├── UnknownMember           a name that is nobody's, or more than one member's
├── UnknownMessage          a message id that this conversation does not have
├── UnknownSender           a message from a person, and no telling which
├── UnknownTurn             a turn id that this conversation does not have
├── UnreadableTeamFile      a team file that is no small text file, or that we may not read
└── UnsupportedSystem       this operating system cannot run agents

Arguments of the wrong type or range are the caller's bug and raise TypeError or ValueError, as in the rest of Python.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

from bullpen.turn_events import Failed

Severity = Literal["error", "warning", "remark"]
LONGEST_SHOWN = 200


class BullpenError(Exception):
    """Something bullpen could not do, in a sentence for people."""


class AgentFailed(BullpenError):
    """An agent's turn that failed, and what to do next."""

    def __init__(self, agent: str, event: Failed) -> None:
        super().__init__(f"{agent}: {event.message}" + (f" {event.hint}" if event.hint else ""))
        self.agent = agent
        self.event = event


class AgentNotInstalled(AgentFailed):
    """There is no such program."""


class AgentNotSignedIn(AgentFailed):
    """The CLI has no valid login or key."""


class QuotaExceeded(AgentFailed):
    """A quota or rate limit is used up; event.reset_at says until when, if the vendor does."""


class AgentOverloaded(AgentFailed):
    """The vendor's service is down or too busy."""


class PromptTooLong(AgentFailed):
    """The prompt is longer than this CLI or its model takes."""


class TurnLimitReached(AgentFailed):
    """The CLI stopped at its own limit of steps."""


class PermissionRefused(AgentFailed):
    """The CLI refuses to run with these permissions or in this folder."""


class AgentCrashed(AgentFailed):
    """The program ended badly; event.exit_code and event.stderr_tail say how."""


class AgentTimedOut(AgentFailed):
    """The program said nothing for too long, or took too long in all."""


class ProtocolBroken(AgentFailed):
    """The program ended well and yet gave no usable answer."""


class InstructionFileProblem(BullpenError):
    """A file with instructions for an agent that cannot be used, and what to do about it."""

    def __init__(self, name: str, what: str, hint: str) -> None:
        shown = repr(name if len(name) <= LONGEST_SHOWN else f"…{name[-LONGEST_SHOWN:]}")
        super().__init__(f"The instruction file {shown} {what} {hint}")
        self.name = name
        self.hint = hint


class InvalidSnapshot(BullpenError, ValueError):
    """A snapshot that cannot be loaded."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Invalid snapshot format: {reason}. The conversation was left as it was.")
        self.reason = reason


class PromptTooLarge(BullpenError, ValueError):
    """The parts of a prompt that may not be cut need more bytes than there are."""

    def __init__(self, agent_type: str, *, max_bytes: int, section_bytes: Mapping[str, int], advice: str) -> None:
        sizes = ", ".join(f"{name} {size:,}" for name, size in section_bytes.items() if size)
        super().__init__(f"The prompt for {agent_type} does not fit into {max_bytes:,} bytes ({sizes}). {advice}")
        self.agent_type = agent_type
        self.max_bytes = max_bytes
        self.section_bytes = dict(section_bytes)


class UnknownMessage(BullpenError, LookupError):
    """A message id that is not in the conversation."""

    def __init__(self, message_id: str) -> None:
        super().__init__(f"There is no message {message_id!r} in this conversation. Ids look like 'msg-1'.")
        self.message_id = message_id


class UnknownAgent(BullpenError, LookupError):
    """An agent type that no module knows."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"There is no agent type {name!r}. Known are: {', '.join(sorted(known))}.")
        self.name = name


class UnsupportedSystem(BullpenError):
    """This operating system cannot run agents."""


class TeamProblem:
    """One thing that is wrong with a team file: where, what, and what was probably meant."""

    def __init__(self, text: str, *, line: int | None = None, key: str = "", severity: Severity = "error") -> None:
        self.text = text
        self.line = line
        self.key = key
        self.severity = severity

    def __str__(self) -> str:
        place = f"line {self.line}, " if self.line else ""
        return f"{place}{self.key}: {self.text}" if self.key else f"{place}{self.text}"


class InvalidTeam(BullpenError, ValueError):
    """A team file that cannot be used, with everything that is wrong with it."""

    def __init__(self, problems: Iterable[TeamProblem], *, path: object = None) -> None:
        self.problems = tuple(problems)
        self.path = None if path is None else str(path)
        name = "The team file" if path is None else self.path
        super().__init__(f"{name} cannot be used.\n" + "\n".join(f"  {problem}" for problem in self.problems))


class NoTeamFile(BullpenError, LookupError):
    """There is no team file of this name."""

    def __init__(self, path: object) -> None:
        super().__init__(f"There is no file {path}. `bullpen init` writes one.")
        self.path = str(path)


class UnreadableTeamFile(BullpenError, ValueError):
    """A team file that is no small text file, or that we may not read."""

    def __init__(self, path: object, reason: str, hint: str = "") -> None:
        super().__init__(f"{path} {reason}." + (f" {hint}" if hint else ""))
        self.path = str(path)
        self.reason = reason
        self.hint = hint


class NotTrusted(BullpenError):
    """A team file that nobody has agreed to run."""

    def __init__(self, path: object, advice: str) -> None:
        super().__init__(f"{path} is not trusted, so nothing of it was run. {advice}")
        self.path = str(path)


class UnknownSender(BullpenError):
    """A message from a person, and no telling from which."""

    def __init__(self, reason: str, people: Iterable[str]) -> None:
        self.people = tuple(people)
        super().__init__(f"{reason} The people in this team are: {', '.join(self.people)}.")


class UnknownMember(BullpenError, LookupError):
    """A name that is nobody's in the team, or more than one member's."""


class NobodyToAsk(BullpenError):
    """Nobody who could answer was named."""


class NothingSaid(BullpenError):
    """A message without a word."""

    def __init__(self) -> None:
        super().__init__("There is nothing in this message. Write something, and send it again.")


class NothingRuns(BullpenError):
    """There is no running turn to cancel."""

    def __init__(self, turn_id: str | None) -> None:
        super().__init__("No turn is running." if turn_id is None else f"Turn {turn_id} is not running.")


class NothingToDecide(BullpenError):
    """No turn is waiting for a decision."""

    def __init__(self, turn_id: str | None) -> None:
        which = "No turn is" if turn_id is None else f"Turn {turn_id} is not"
        super().__init__(f"{which} waiting for a decision.")


class ConversationClosed(BullpenError):
    """Something was wanted of a conversation after it was closed."""

    def __init__(self, conversation_id: str) -> None:
        super().__init__(f"Conversation {conversation_id} is closed. Open it again to go on.")
        self.conversation_id = conversation_id


class ConversationInUse(BullpenError):
    """Another process owns the conversation."""

    def __init__(self, conversation_id: str, pid: int) -> None:
        super().__init__(
            f"Conversation {conversation_id} is open in process {pid}. Speak there, or watch it from here with: "
            f"bullpen sessions watch {conversation_id}"
        )
        self.conversation_id = conversation_id
        self.pid = pid


class CannotListen(BullpenError):
    """There is no safe address to serve pages at."""

    def __init__(self, host: str, reason: str, hint: str) -> None:
        super().__init__(f"Nothing was served: {host} {reason}. {hint}")
        self.host = host


class MissingExtra(BullpenError):
    """A door whose packages are not installed."""

    def __init__(self, extra: str, module: str) -> None:
        super().__init__(f"This needs {module}, which is not installed. Try: pip install 'bullpen[{extra}]'")
        self.extra = extra


class ReadOnlyHere(BullpenError):
    """A conversation that can be looked at, but not continued, from here."""


class StoreError(BullpenError):
    """The file that conversations are kept in cannot be used, and what to do about it."""

    def __init__(self, path: object, what: str, hint: str) -> None:
        super().__init__(f"{path} {what} {hint}")
        self.path = str(path)
        self.hint = hint


class NotAStore(StoreError):
    """The file is something else."""

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(path, f"{reason}, so it was left as it is.", "Move it away, or name another file with --db.")


class StoreDamaged(StoreError):
    """What the file holds cannot be what was written to it."""

    def __init__(self, path: object, reason: str) -> None:
        hint = "Nothing is written to it any more. Copy the file, let `bullpen fsck` say what is lost, or use a backup."
        super().__init__(path, f"is damaged: {reason}.", hint)
        self.reason = reason


class StoreTooNew(StoreError):
    """A newer bullpen wrote the file."""

    def __init__(self, path: object, version: int, known: int) -> None:
        super().__init__(path, f"has format {version}, and this bullpen knows {known}.", "Update bullpen.")


class StoreReadOnly(StoreError):
    """The file may not be written to, or not even read."""

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(path, f"{reason}.", "Change its permissions, or name another file with --db.")


class StoreFull(StoreError):
    """There is no room to write."""

    def __init__(self, path: object) -> None:
        super().__init__(path, "cannot be written: the disk or a quota is full.", "Make room, and do it again.")


class StoreBusy(StoreError):
    """Another process holds the file for too long."""

    def __init__(self, path: object) -> None:
        super().__init__(
            path, "is locked by another process.", "Do it again; if that does not help, end the other one."
        )


class StoreFailed(StoreError):
    """The disk or SQLite failed in another way."""

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(path, f"could not be used: {reason}.", "Check the disk, and do it again.")


class StoreConflict(BullpenError):
    """What was asked of the store was done before, or by somebody else. Nothing was changed."""


class ConversationExists(StoreConflict):
    """The id of a new conversation is in use, or was once."""

    def __init__(self, conversation_id: str) -> None:
        super().__init__(f"There is, or was, a conversation {conversation_id!r} already. Choose a new id.")
        self.conversation_id = conversation_id


class MessageDiffers(StoreConflict):
    """A message was sent again under its id, and it is not the same."""

    def __init__(self, message_id: str) -> None:
        super().__init__(f"Message {message_id!r} is stored already and says something else. Send it under a new id.")
        self.message_id = message_id


class NotTheOwner(StoreConflict):
    """A process wants to run a turn of a conversation that it does not own."""

    def __init__(self, conversation_id: str, pid: int | None) -> None:
        whose = "no process" if pid is None else f"process {pid}"
        super().__init__(f"Conversation {conversation_id!r} belongs to {whose}. Only its owner runs its turns.")
        self.conversation_id = conversation_id
        self.pid = pid


class TurnConflict(StoreConflict):
    """A turn is not in the state that was expected."""

    def __init__(self, turn_id: str, state: str = "not waiting", expected: str = "") -> None:
        instead = f", not {expected}" if expected else ""
        super().__init__(f"Turn {turn_id} is {state}{instead}. /queue shows the queue.")
        self.turn_id = turn_id
        self.state = state


class UnknownCommand(BullpenError, LookupError):
    """A word after a slash that is not a command."""

    def __init__(self, word: str, near: Iterable[str]) -> None:
        names = " or ".join(f"/{name}" for name in near)
        meant = f" Did you mean {names}?" if names else ""
        super().__init__(
            f"There is no command /{word}.{meant} /help lists all. Begin with a space to send it as a message."
        )


class UnknownConversation(BullpenError, LookupError):
    """A conversation id that the store does not have."""

    def __init__(self, conversation_id: str) -> None:
        super().__init__(f"There is no conversation {conversation_id!r}. `bullpen sessions` lists them.")
        self.conversation_id = conversation_id


class UnknownTurn(BullpenError, LookupError):
    """A turn id that is not in the conversation."""

    def __init__(self, turn_id: str) -> None:
        super().__init__(f"There is no turn {turn_id!r} in this conversation.")
        self.turn_id = turn_id


class AmbiguousConversation(BullpenError, LookupError):
    """The beginning of a conversation id that fits several."""

    def __init__(self, beginning: str, ids: Iterable[str]) -> None:
        self.ids = tuple(ids)
        few = ", ".join(self.ids[:5]) + (", …" if len(self.ids) > 5 else "")
        super().__init__(f"{beginning!r} could be any of {len(self.ids)} conversations: {few}. Write more of the id.")


class NoConversations(BullpenError):
    """There is no file of conversations, or nothing in it."""

    def __init__(self) -> None:
        super().__init__("No conversations yet. `bullpen chat team.toml` starts one.")


class OutputExists(BullpenError):
    """A file that would be written over."""

    def __init__(self, path: object) -> None:
        super().__init__(f"{path} exists already and was left as it is. Name another file, or add --force.")
        self.path = str(path)


class InvalidImport(BullpenError, ValueError):
    """A file that cannot become a conversation."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"This cannot be imported: {reason}. Nothing was written.")
        self.reason = reason
