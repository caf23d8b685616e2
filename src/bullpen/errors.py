"""Every error bullpen raises on purpose, in one tree.

BullpenError
├── AgentFailed             an agent's turn failed; carries the Failed event that ended it
│   ├── AgentNotInstalled
│   ├── AgentNotSignedIn
│   ├── QuotaExceeded
│   ├── AgentOverloaded
│   ├── PromptTooLong       for this CLI, regardless of the byte budget
│   ├── TurnLimitReached
│   ├── PermissionRefused
│   ├── SessionLost         the CLI cannot continue in a session
│   ├── AgentCrashed
│   ├── AgentTimedOut
│   ├── ProtocolBroken      it gave no usable answer
│   └── WorkerLost          the worker that ran it on another machine is gone
├── AmbiguousConversation   the start of a conversation id matches several
├── CannotListen            no address to serve pages at
├── ConversationClosed      the conversation was closed in this process
├── CannotJoin              a process may not be part of a cluster
├── ConversationInUse       another running process owns the conversation
├── DoorClosed              the process that owns a conversation takes nothing from here
├── FolderInUse             agents are working in a folder whose files should be put back
├── FilesError              the files of a workspace were not put into another state
│   ├── FilesDiffer         some were changed since; nothing was touched
│   ├── FilesFailed         the disk failed, perhaps in the middle
│   ├── FilesNotKept        their contents are not known, or not any more; nothing was touched
│   └── NoOwnWorkspace      an agent cannot have the workspace of its own that it should work in
├── InstructionFileProblem  an agent's instruction file cannot be used
├── InvalidImport           the file cannot be imported; nothing was written
├── InvalidSnapshot         the snapshot cannot be loaded; nothing was changed
├── InvalidTeam             the team file cannot be used; lists everything that is wrong with it
├── MissingExtra            the packages of an optional feature are not installed
├── NeedsCluster            a member's turns run on workers, and there is no cluster
├── NoConflict              no conflict in files is waiting for a decision
├── NoConversations         there is no database yet
├── NoTeamFile              there is no team file of this name
├── NobodyToAsk             the message names nobody who could answer
├── NotAllowedHere          the file of a worker does not let it run an order
├── NotTrusted              nobody has agreed to run this team file
├── NothingRuns             there is no running turn to cancel
├── NothingSaid             the message is empty
├── NothingToDecide         no turn is waiting for a decision
├── NothingToForget         the member has no session of its own
├── NothingToRaise          no budget is used up, or nearly so
├── NothingToMerge          everything that an agent did is in the shared folder already
├── NothingToPick           none of several results can be picked or dropped now
├── NothingToReview         no review is open, or none waits for a person
├── NothingToSumUp          no summary can be asked for or dropped now
├── NothingToUndo           no changes of files can be taken back, or brought back
├── OutputExists            the output file exists already
├── PromptTooLarge          the parts that may not be cut exceed the byte budget; nothing was sent
├── ReadOnlyHere            the conversation can be read from here, but not continued
├── StoreConflict           the change was made before, or by another process; nothing was changed
│   ├── ConversationDiffers another one with the same id is where it should be copied to
│   ├── ConversationExists
│   ├── MessageDiffers      the same message id with different content
│   ├── NotTheOwner         another process owns the conversation, or none
│   └── TurnConflict        the turn is not in the expected state
│       └── TurnNumberTaken
├── StoreError              the database cannot be used; the operation was not carried out
│   ├── NotAStore           the file is not a bullpen database
│   ├── StoreBusy           another process has locked it for too long
│   ├── StoreDamaged
│   │   └── LogLost         its newest data was in a log that is not there any more
│   ├── StoreFailed         the disk, SQLite or PostgreSQL failed in another way
│   ├── StoreFull           there is no room to write
│   ├── StoreReadOnly       we may not write to it, or not even read it
│   ├── StoreTooNew         a newer bullpen wrote it
│   ├── StoreTooOld         the server is older than we can use
│   └── StoreUnreachable    there is no connection to the server
│       └── StoreUncertain      it was lost while something was stored, and nobody knows whether it was
├── UnknownAgent            no module provides this agent type
├── UnknownChange           this conversation has no changes with this number
├── UnknownCommand          the word after a slash is not a command
├── UnknownConversation     the store has no conversation with this id
├── UnknownMember           no member has this name, or more than one has
├── UnknownMessage          this conversation has no message with this id
├── UnknownSender           it is not clear which person sent the message
├── UnknownSession          no browser or program with this id has access
├── UnknownTurn             this conversation has no turn with this id
├── UnreadableTeamFile      the team file is not a small text file, or we may not read it
├── UnsupportedSystem       this operating system cannot run agents
├── WorkerFileProblem       the file of a worker cannot be used
└── WrongUsage              the words after `bullpen` do not make sense together

Arguments of the wrong type or range are the caller's mistake and raise TypeError or ValueError, as elsewhere in Python.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from bullpen.turn_events import Failed

Severity = Literal["error", "warning", "remark"]
LONGEST_SHOWN = 200
FEW_PATHS = 5


class BullpenError(Exception):
    """Something bullpen could not do. The message is a sentence for people."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it be pickled and copied; without this, __init__ would be called with the sentence alone."""
        return _without_init, (type(self), self.args), self.__dict__


def _without_init(kind: type[BullpenError], args: tuple[object, ...]) -> BullpenError:
    return kind.__new__(kind, *args)


class AgentFailed(BullpenError):
    """An agent's turn that failed, and what to do next."""

    def __init__(self, agent: str, event: Failed) -> None:
        super().__init__(f"{agent}: {event.explanation}")
        self.agent = agent
        self.event = event


class AgentNotInstalled(AgentFailed):
    """There is no such program."""


class AgentNotSignedIn(AgentFailed):
    """The CLI has no valid login or key."""


class QuotaExceeded(AgentFailed):
    """A quota or rate limit is used up; event.reset_at says until when, if the vendor reports it."""


class AgentOverloaded(AgentFailed):
    """The vendor's service is down or too busy."""


class PromptTooLong(AgentFailed):
    """The prompt is longer than this CLI or its model accepts."""


class TurnLimitReached(AgentFailed):
    """The CLI reached its own limit of steps."""


class PermissionRefused(AgentFailed):
    """The CLI refuses to run with these permissions or in this folder."""


class SessionLost(AgentFailed):
    """The CLI cannot continue in the session that it was asked to resume. It has done nothing."""


class AgentCrashed(AgentFailed):
    """The program failed; event.exit_code and event.stderr_tail say how."""


class AgentTimedOut(AgentFailed):
    """The program wrote nothing for too long, or took too long in total."""


class ProtocolBroken(AgentFailed):
    """The program succeeded but gave no usable answer."""


class WorkerLost(AgentFailed):
    """The worker that ran the turn is gone. The turn may have done anything by then, and nobody runs it again."""


class InstructionFileProblem(BullpenError):
    """An agent's instruction file that cannot be used, and what to do about it."""

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
    """An agent type that no module provides."""

    def __init__(self, name: str, known: Iterable[str], why: str = "") -> None:
        super().__init__(why or f"There is no agent type {name!r}. Known types: {', '.join(sorted(known))}.")
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
    """A team file that is not a small text file, or that we may not read."""

    def __init__(self, path: object, reason: str, hint: str = "") -> None:
        super().__init__(f"{path} {reason}." + (f" {hint}" if hint else ""))
        self.path = str(path)
        self.reason = reason
        self.hint = hint


class NotTrusted(BullpenError):
    """A team file that nobody has agreed to run."""

    def __init__(self, path: object, advice: str) -> None:
        super().__init__(f"{path} is not trusted, so nothing in it was run. {advice}")
        self.path = str(path)


class UnknownSender(BullpenError):
    """A message from a person, and it is not clear which one."""

    def __init__(self, reason: str, people: Iterable[str]) -> None:
        self.people = tuple(people)
        super().__init__(f"{reason} The people in this team are: {', '.join(self.people)}.")


class UnknownMember(BullpenError, LookupError):
    """A name that no member has, or more than one."""


class NobodyToAsk(BullpenError):
    """A message that names nobody who could answer."""


class NothingSaid(BullpenError):
    """An empty message."""

    def __init__(self) -> None:
        super().__init__("This message is empty. Write something and send it again.")


class NothingRuns(BullpenError):
    """There is no running turn to cancel."""

    def __init__(self, turn_id: str | None = None, *, members: Sequence[str] = ()) -> None:
        verb = "is" if len(members) == 1 else "are"
        idle = f"{', '.join(members)} {verb} not working." if members else "No turn is running."
        super().__init__(idle if turn_id is None else f"Turn {turn_id} is not running.")


class NothingToDecide(BullpenError):
    """No turn is waiting for a decision."""

    def __init__(self, turn_id: str | None) -> None:
        which = "No turn is" if turn_id is None else f"Turn {turn_id} is not"
        super().__init__(f"{which} waiting for a decision.")


class NotWorking(BullpenError):
    """An agent is to be told something while it works, and does not work."""

    def __init__(self, member: str) -> None:
        super().__init__(f"{member} is not working now. Say it instead: @{member} …")


class NothingAsked(BullpenError):
    """No agent waits for an answer to this question."""

    def __init__(self, turn_id: str, question: str) -> None:
        which = f" to a question {question!r}" if question else ""
        super().__init__(f"Turn {turn_id} does not wait for an answer{which}.")


class AnsweredAlready(BullpenError):
    """Somebody else was faster, or it was answered without a person."""

    def __init__(self, by: str, verdict: str) -> None:
        super().__init__(f"The question is answered already: {verdict} ({by}). That answer counts.")


class DoorClosed(BullpenError):
    """The process that owns a conversation cannot be reached from here."""

    def __init__(self) -> None:
        super().__init__(
            "The process that has this conversation open does not accept answers from here: it has just ended, or is "
            "on another machine, of another user, or an older bullpen. Answer it there. Nothing was done."
        )


class CannotChange(BullpenError):
    """Another command cannot be run instead of the one that an agent asks for."""

    def __init__(self, member: str) -> None:
        super().__init__(f"The CLI of {member} cannot run another command instead. Say no, and what it should run.")


class HoldsOnce(BullpenError):
    """A yes cannot hold for longer than once: it is about a file outside of the agent's folder."""

    def __init__(self, member: str) -> None:
        super().__init__(
            f"{member} asks about a file outside of its folder: a yes to that holds only once. Type /yes, or /no."
        )


class NoConflict(BullpenError):
    """No conflict in files is waiting for a decision."""

    def __init__(self, turn_id: str | None) -> None:
        of_turn = "" if turn_id is None else f" of turn {turn_id}"
        super().__init__(f"There is no conflict{of_turn} to decide about. /queue shows what needs a decision.")


class NothingToForget(BullpenError):
    """A member has no session of its own, or none yet."""


class NothingToRaise(BullpenError):
    """No budget is used up, or nearly so: of a member, of the conversation (an empty name), or at all (None)."""

    def __init__(self, whose: str | None = None) -> None:
        self.whose = whose
        name = "No budget" if whose is None else f"No budget of {whose or 'the conversation'}"
        super().__init__(f"{name} is used up, or nearly so. /who shows how much is used; the team file sets budgets.")


class NothingToPick(BullpenError):
    """None of several results can be picked or dropped now, or not the one that is named."""


class NothingToReview(BullpenError):
    """No review is open, or none waits for a person, or it is not clear which one is meant."""


class NothingToSumUp(BullpenError):
    """No summary can be asked for or dropped now, or not the one that is named."""


class NothingToMerge(BullpenError):
    """An agent has no work of its own that is not in the shared folder."""

    def __init__(self, member: str, *, was_asked: bool = False) -> None:
        where = (
            "in the shared folder, or was taken back. The conflict is settled" if was_asked else "in the shared folder"
        )
        super().__init__(f"There is nothing to merge: everything that {member} did is {where}.")
        self.member = member


class NothingToUndo(BullpenError):
    """There are no changes of files to take back, to bring back, or to go back to."""


class FolderInUse(BullpenError):
    """Agents are working in a folder, so its files cannot be put back."""

    def __init__(self, folder: str, members: Iterable[str]) -> None:
        names = ", ".join(members)
        super().__init__(f"{names} may be changing files in {folder} now. Wait until that has ended, or cancel it.")


class ConversationClosed(BullpenError):
    """The conversation was closed before this call."""

    def __init__(self, conversation_id: str) -> None:
        super().__init__(f"Conversation {conversation_id} is closed. Open it again to continue.")
        self.conversation_id = conversation_id


class ConversationInUse(BullpenError):
    """Another process owns the conversation."""

    def __init__(self, conversation_id: str, pid: int, host: str = "") -> None:
        where = f"process {pid}{f' on {host}' if host else ''}"
        super().__init__(
            f"Conversation {conversation_id} is open in {where}. Continue there, or watch it from here with: "
            f"bullpen sessions watch {conversation_id}"
        )
        self.conversation_id = conversation_id
        self.pid = pid
        self.host = host


class CannotListen(BullpenError):
    """There is no safe address to serve pages at."""

    def __init__(self, host: str, reason: str, hint: str) -> None:
        super().__init__(f"The server did not start: {host} {reason}. {hint}")
        self.host = host


class MissingExtra(BullpenError):
    """An optional feature whose packages are not installed."""

    def __init__(self, extra: str, module: str) -> None:
        super().__init__(f"This needs {module}, which is not installed. Try: {how_to_install(extra)}")
        self.extra = extra


def how_to_install(extra: str) -> str:
    """Return the command that installs an optional feature: from the clone that this runs in, if it does."""
    from pathlib import Path

    clone = Path(__file__).parents[2]
    return f"pip install '{clone if (clone / 'pyproject.toml').exists() else 'bullpen-chat'}[{extra}]'"


class FilesError(BullpenError):
    """The files of a workspace that were not put into another state."""


class FilesDiffer(FilesError):
    """Files that are neither as they were before a change nor as they were after it."""

    def __init__(self, folder: object, paths: Sequence[str], then: str = "Keep or undo that first") -> None:
        few = ", ".join(map(repr, paths[:FEW_PATHS])) + (", …" if len(paths) > FEW_PATHS else "")
        verb = "has" if len(paths) == 1 else "have"
        super().__init__(f"In {folder}, {few} {verb} changed since, so nothing was touched. {then}.")
        self.folder = str(folder)
        self.paths = tuple(paths)


class FilesFailed(FilesError):
    """The disk failed while files were put into another state."""

    def __init__(self, folder: object, reason: str) -> None:
        super().__init__(f"Not all files in {folder} could be written: {reason}. Solve that and do it again.")
        self.folder = str(folder)
        self.reason = reason


class FilesNotKept(FilesError):
    """Contents of files that are not known, or not any more."""

    def __init__(self, folder: object, reason: str) -> None:
        super().__init__(f"Earlier contents of {folder} are not known: {reason}. Nothing was touched.")
        self.folder = str(folder)
        self.reason = reason


class NoOwnWorkspace(FilesError):
    """An agent that is to work in a workspace of its own, and cannot."""

    def __init__(self, member: str, reason: str) -> None:
        super().__init__(f"{member} cannot work in a workspace of its own: {reason}")
        self.member = member
        self.reason = reason


class WorkerAway(FilesError):
    """A worker that has the files, and cannot be reached."""

    @classmethod
    def of(cls, worker: str, pool: str) -> "WorkerAway":
        """Return it for something that was not begun."""
        return cls(f"The worker {worker} of the pool {pool}, which has these files, is away. Nothing was touched.")

    @classmethod
    def lost(cls, worker: str, pool: str) -> "WorkerAway":
        """Return it for something that was begun."""
        return cls(
            f"The worker {worker} of the pool {pool}, which has these files, was lost while it did this. "
            "What it has begun is completed when it is back."
        )


class WorkerRefused(FilesError):
    """A worker that has the files, and whose own file does not let it do this."""


class ReadOnlyHere(BullpenError):
    """A conversation that can be read from here, but not continued."""


class StoreError(BullpenError):
    """The database cannot be used, and what to do about it."""

    def __init__(self, path: object, what: str, hint: str) -> None:
        super().__init__(f"{path} {what} {hint}")
        self.path = str(path)
        self.hint = hint


class NotAStore(StoreError):
    """The file is not a bullpen database."""

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(path, f"{reason}, so it was not changed.", "Move it away, or choose another file with --db.")


class StoreDamaged(StoreError):
    """The file does not contain what was written to it."""

    def __init__(self, path: object, reason: str, hint: str = "") -> None:
        usual = "Nothing more is written to it. Copy the file, see what is lost with `bullpen fsck`, or use a backup."
        super().__init__(path, f"is damaged: {reason}.", hint or usual)
        self.reason = reason


class LogLost(StoreDamaged):
    """The newest data was in the write-ahead log beside the file, and is not there any more."""

    def __init__(self, path: object, reason: str) -> None:
        from shlex import quote

        hint = (
            "Nothing is written to it. Use a backup with `bullpen restore FILE`, or what is left with `bullpen restore "
            f"--what-is-left`, both with --db {quote(str(path))}; the files as they are now are kept."
        )
        super().__init__(path, reason, hint)


class StoreTooNew(StoreError):
    """A newer bullpen wrote the file."""

    def __init__(self, path: object, version: int, known: int) -> None:
        super().__init__(path, f"has format {version}, but this bullpen only reads up to {known}.", "Update bullpen.")


class StoreReadOnly(StoreError):
    """The file may not be written to, or not even read."""

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(path, f"{reason}.", "Change its permissions, or choose another file with --db.")


class StoreFull(StoreError):
    """There is no room to write."""

    def __init__(self, path: object) -> None:
        super().__init__(path, "cannot be written: the disk or a quota is full.", "Free some space and try again.")


class StoreBusy(StoreError):
    """Another process has locked the file for too long."""

    def __init__(self, path: object) -> None:
        super().__init__(
            path, "is locked by another process.", "Try again; if that does not help, end the other process."
        )


class StoreFailed(StoreError):
    """The disk, SQLite or PostgreSQL failed in another way."""

    def __init__(self, path: object, reason: str, hint: str = "Check the disk and try again.") -> None:
        super().__init__(path, f"could not be used: {reason}.", hint)


class StoreTooOld(StoreError):
    """The server is older than we can use."""

    def __init__(self, path: object, version: int, needed: int) -> None:
        super().__init__(path, f"is PostgreSQL {version}, but bullpen needs {needed} or newer.", "Update the server.")


class StoreUnreachable(StoreError):
    """There is no connection to the server, or not any more."""

    def __init__(self, path: object, reason: str, *, has_answered: bool) -> None:
        what = "refused the connection" if has_answered else "cannot be reached"
        refused, away = "Check the user, the password and the name of the database.", "Is the server running?"
        super().__init__(path, f"{what}: {reason}.", refused if has_answered else away)
        self.reason = reason
        self.has_answered = has_answered


class StoreUncertain(StoreUnreachable):
    """The connection was lost while something was stored: nobody knows whether it was."""

    def __init__(self, path: object, reason: str) -> None:
        what, next_step = f"was lost while something was stored: {reason}.", "Open the conversation again."
        StoreError.__init__(self, path, what, next_step)
        self.reason, self.has_answered = reason, False


class StoreConflict(BullpenError):
    """The change was made before, or by another process. Nothing was changed."""


class ConversationExists(StoreConflict):
    """The id of a new conversation is already taken, perhaps by a deleted one."""

    def __init__(self, conversation_id: str) -> None:
        super().__init__(f"The conversation id {conversation_id!r} is already taken. Choose a new id.")
        self.conversation_id = conversation_id


class ConversationDiffers(StoreConflict):
    """A conversation cannot be copied: there is another one with its id."""

    def __init__(self, conversation_id: str, where: object) -> None:
        super().__init__(
            f"Conversation {conversation_id!r} is in {where} already, but it is not the same: something was said or "
            "done in one of the two since. Nothing of it was copied. Export the one that you want to keep."
        )


class MessageDiffers(StoreConflict):
    """A message was sent again with the same id but different content."""

    def __init__(self, message_id: str) -> None:
        super().__init__(f"Message {message_id!r} is already stored with different content. Send it with a new id.")
        self.message_id = message_id


class NotTheOwner(StoreConflict):
    """A process tried to change a conversation that it does not own, or does not own any more."""

    def __init__(self, conversation_id: str, pid: int | None = None, host: str = "") -> None:
        where = f"process {pid}{f' on {host}' if host else ''}"
        if pid is None:
            text = "is not open here any more, so nothing was changed. Open it again to continue."
        else:
            text = f"is open in {where}, so nothing was changed here. Continue there, or close it there first."
        super().__init__(f"Conversation {conversation_id} {text}")
        self.conversation_id = conversation_id
        self.pid = pid
        self.host = host


class TurnConflict(StoreConflict):
    """A turn is not in the expected state."""

    def __init__(self, turn_id: str, state: str = "not waiting", expected: str = "") -> None:
        instead = f", not {expected}" if expected else ""
        super().__init__(f"Turn {turn_id} is {state}{instead}. /queue shows the queue.")
        self.turn_id = turn_id
        self.state = state


class TurnNumberTaken(TurnConflict):
    """A new turn has the id of another one."""

    def __init__(self, turn_id: str, state: str) -> None:
        super().__init__(turn_id, f"already {state}", "new")


class UnknownCommand(BullpenError, LookupError):
    """A word after a slash that is not a command."""

    def __init__(self, word: str, near: Iterable[str]) -> None:
        names = " or ".join(f"/{name}" for name in near)
        meant = f" Did you mean {names}?" if names else ""
        super().__init__(
            f"There is no command /{word}.{meant} /help all lists them. Start with a space to send it as a message."
        )


class UnknownConversation(BullpenError, LookupError):
    """A conversation id that is not in the store."""

    def __init__(self, conversation_id: str) -> None:
        super().__init__(f"There is no conversation {conversation_id!r}. `bullpen sessions` lists them.")
        self.conversation_id = conversation_id


class UnknownSession(BullpenError, LookupError):
    """An id that is not in the list of those who have access."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"Nobody who has access has the id {session_id!r}. It may have ended, or was revoked before.")


class UnknownChange(BullpenError, LookupError):
    """A number of changes that is not in the conversation."""

    def __init__(self, number: int) -> None:
        super().__init__(f"There are no changes with the number {number} in this conversation.")
        self.number = number


class UnknownTurn(BullpenError, LookupError):
    """A turn id that is not in the conversation."""

    def __init__(self, turn_id: str) -> None:
        super().__init__(f"There is no turn {turn_id!r} in this conversation.")
        self.turn_id = turn_id


class AmbiguousConversation(BullpenError, LookupError):
    """The start of a conversation id that matches several."""

    def __init__(self, prefix: str, ids: Iterable[str]) -> None:
        self.ids = tuple(ids)
        few = ", ".join(self.ids[:5]) + (", …" if len(self.ids) > 5 else "")
        super().__init__(f"{prefix!r} matches {len(self.ids)} conversations: {few}. Type more of the id.")


class NoConversations(BullpenError):
    """There is no database, or nothing in it."""

    def __init__(self) -> None:
        super().__init__("No conversations yet. `bullpen chat team.toml` starts one.")


class OutputExists(BullpenError):
    """A file that would be overwritten."""

    def __init__(self, path: object) -> None:
        super().__init__(f"{path} already exists and was not changed. Choose another file, or add --force.")
        self.path = str(path)


class InvalidImport(BullpenError, ValueError):
    """A file that cannot become a conversation."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"This cannot be imported: {reason}. Nothing was written.")
        self.reason = reason


class WrongUsage(BullpenError):
    """Words on the command line that do not make sense together; the exit code says so, too."""


class NeedsCluster(BullpenError):
    """A member whose turns run on workers, where there are none."""

    def __init__(self, member: str, pool: str) -> None:
        super().__init__(
            f"{member} runs on workers of the pool {pool!r}, and this conversation is not part of a cluster. "
            "Start it with `bullpen serve --cluster` (docs/cluster.md), or remove pool from its entry."
        )


class NotAllowedHere(BullpenError):
    """An order that the file of a worker does not let it run."""


class WorkerFileProblem(BullpenError):
    """The file of a worker that cannot be used, with everything that is wrong with it."""

    def __init__(self, path: object, *problems: str) -> None:
        super().__init__(f"{path} cannot be used.\n" + "\n".join(f"  {problem}" for problem in problems))
        self.problems = problems


class CannotJoin(BullpenError):
    """A process that may not be part of a cluster, and what to do about it."""
