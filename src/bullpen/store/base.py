"""The Store protocol, and the values that it reads and writes. Times are milliseconds since 1970."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, Self

from msgspec import UNSET, Struct, UnsetType

from bullpen.approvals import ApprovalRecord
from bullpen.check_results import CheckResult
from bullpen.context.history import Envelope
from bullpen.context.prompt import AssemblerOutput
from bullpen.context.report import PromptReport
from bullpen.file_changes import ChangeRecord
from bullpen.markers.grammar import DEFAULT_INTENT
from bullpen.memory import MemberMemory, Memory
from bullpen.messages import ConversationMessage, Speaker
from bullpen.routing.queue import WaitingTurn
from bullpen.tools.uses import ToolUse
from bullpen.turn_events import Failed, Usage

TurnState = Literal["queued", "running", "done", "failed", "cancelled", "interrupted", "dropped"]
EndState = Literal["done", "failed", "cancelled", "interrupted"]
Activity = Literal["running", "paused", "queued", "waiting", "idle"]
FIRST_WORDS_CHARACTERS = 160
FindingKind = Literal["file", "index", "changed", "missing", "out_of_order", "turn", "record", "stuck"]
"""What is stuck can be mended: nothing is damaged, but the conversation refuses what is said in it."""


class Owner(Struct, frozen=True, kw_only=True):
    """A process that owns a conversation. It cannot be mistaken for a later process with the same number."""

    token: str
    """New for every claim; two conversations in one process do not share it. Writes are fenced by it."""
    pid: int
    start_time: int
    boot_id: str
    host: str = ""
    """The name of its machine, for people, and where there is no boot id."""
    seen_at: int = 0
    """When it last said that it is alive, by its own clock."""
    node: int = 0
    """The number of a node in its cluster; 0: it is not part of one."""


IsAlive = Callable[[Owner], bool]


class Decision(Struct, frozen=True, kw_only=True):
    """What a person decided, besides speaking."""

    at: int
    person: str
    choice: str
    """The command: continue, drop, retry, …"""
    turns: tuple[str, ...] = ()
    """The ids of the turns that it is about, then of those that follow from it."""


class StateChange(Struct, frozen=True, kw_only=True):
    """Changes to a conversation's state; UNSET fields stay as they are."""

    team_task: str | UnsetType | None = UNSET
    waits_for: str | UnsetType | None = UNSET
    """The person we wait for."""
    paused: str | UnsetType | None = UNSET
    """Why no turn begins until a person continues."""
    progress: dict[str, Any] | UnsetType = UNSET
    """What else must survive a restart, such as what the limits count. JSON, always replaced as a whole."""
    team_path: str | UnsetType = UNSET
    title: str | UnsetType | None = UNSET
    """What a person calls it; None: nothing of its own."""
    archived_at: int | UnsetType | None = UNSET
    decision: Decision | None = None
    """Who decided it; None: nobody did, it follows from something else."""


NO_CHANGE = StateChange()


class StoredConversation(Struct, frozen=True, kw_only=True):
    """One conversation and its state."""

    id: str
    team: str
    team_file: str
    """The text of the team file that it was started with."""
    team_path: str
    """The path of that file; empty if there was none."""
    started_at: int
    last_at: int
    messages: int
    first_words: str
    """Of the first message of a person; of the first message if it is late."""
    queued: int
    running: int
    team_task: str | None
    waits_for: str | None
    paused: str | None
    progress: dict[str, Any]
    owner: Owner | None
    extra: dict[str, Any] | None = None
    """Fields of other systems that an import brought, kept as they are."""
    title: str | None = None
    archived_at: int | None = None

    @property
    def state(self) -> Activity:
        """What is happening in it, the most urgent thing first."""
        if self.running:
            return "running"
        if self.paused is not None:
            return "paused"
        if self.queued:
            return "queued"
        return "idle" if self.waits_for is None else "waiting"


def first_words(text: str) -> str:
    """Return the beginning of a message, on one line."""
    return " ".join(text[: 4 * FIRST_WORDS_CHARACTERS].split())[:FIRST_WORDS_CHARACTERS]


class StoredMessage(Struct, frozen=True, kw_only=True):
    """A message and its position."""

    sequence: int
    """1 is the first of its conversation."""
    message: ConversationMessage
    hash: bytes
    """SHA-256 over everything stored about the message, and the hash before it."""
    already_stored: bool = False
    """Only from append: the message was already stored, and nothing was changed."""


class Turn(Struct, frozen=True, kw_only=True):
    """One member's turn to answer a message, and its result."""

    id: str
    member: str
    message_id: str
    """The message that asked for it."""
    intent: int = DEFAULT_INTENT
    step: int = 0
    state: TurnState
    queued_at: int
    started_at: int | None = None
    ended_at: int | None = None
    retry_of: str | None = None
    """The turn that this one retries."""
    reply_id: str | None = None
    """The message that it ended with."""
    usage: Usage | None = None
    failure: Failed | None = None
    """Why it did not end with a message, and what the agent had said by then."""
    after_message: int | None = None
    """How many messages there were when it ended without a reply."""
    uses: tuple[ToolUse, ...] = ()
    """What its agent did with the tools of the turn."""

    @property
    def waiting(self) -> WaitingTurn:
        """The turn as the queue knows it."""
        return WaitingTurn(
            id=self.id, member=self.member, message_id=self.message_id, intent=self.intent, step=self.step
        )


class PoolOrder(Struct, frozen=True, kw_only=True):
    """What the workers of a pool are to run for a turn; see bullpen.cluster."""

    pool: str
    worker: str = ""
    """The only one that may take it, by its name; empty: any."""
    work: bytes
    notes: bytes = b""
    """What its owner must know when the turn ends, whichever node that is by then. Workers do not get it."""
    token: str
    """What a worker shows when it brings what the agent says."""
    node: int
    """Who wants to hear it."""


class PackedStream(Struct, frozen=True, kw_only=True):
    """A program's output, compressed by StreamPacker."""

    data: bytes
    is_cut: bool
    """Whether the output was longer than what is kept."""


class TurnEnd(Struct, frozen=True, kw_only=True):
    """How a running turn ended."""

    turn_id: str
    state: EndState
    at: int
    usage: Usage | None = None
    failure: Failed | None = None
    command: tuple[str, ...] = ()
    stream: PackedStream | None = None
    memory: Memory | None = None
    """The session that it leaves; only of a turn that is done."""
    uses: tuple[ToolUse, ...] = ()


class TurnRecord(Struct, frozen=True, kw_only=True):
    """The prompt and the output of a turn."""

    prompt: str
    system: str | None
    report: PromptReport
    command: tuple[str, ...]
    stream: bytes
    stream_is_cut: bool


class Found(Struct, frozen=True, kw_only=True):
    """A message that a search found."""

    conversation_id: str
    message_id: str
    sequence: int
    speaker: Speaker
    timestamp: int
    snippet: str


class Finding(Struct, frozen=True, kw_only=True):
    """One problem that fsck found."""

    kind: FindingKind
    conversation_id: str | None
    """None if it is about the whole file."""
    text: str


class Store(Protocol):
    """Keeps conversations. When a method returns, its change is on disk; when it raises, nothing has changed.

    Methods block, and may be called from any thread. They raise StoreError when the disk fails, StoreConflict when
    another process was faster, and UnknownConversation, UnknownMessage or UnknownTurn for ids that do not exist.

    What is said and what becomes of it is fenced: these methods take `owner` and raise NotTheOwner, in the same
    transaction, unless the conversation belongs to exactly that owner; None: unless it belongs to nobody. So a process
    that lost a conversation, while it was stopped for example, cannot write any more.
    """

    def create(
        self,
        conversation_id: str,
        *,
        team: str,
        team_file: str,
        team_path: str = "",
        started_at: int,
        team_task: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin a conversation. An id is never used twice, not even after delete: that raises ConversationExists."""

    def conversations(self) -> list[StoredConversation]:
        """Return all conversations, the one with the latest activity first."""

    def unsettled(self, *, owned: bool = False) -> list[str]:
        """Return the ids of conversations that may hold up agents of others: with begun changes, or files to decide on.

        With `owned` also of those that have an owner, who may be dead. Fast, however many others there are.
        """

    def reading_together(self) -> AbstractContextManager[None]:
        """Let this thread read several things in the block, which takes less than reading them one by one.

        What it writes there, it may not see there.
        """

    def conversation(self, conversation_id: str) -> StoredConversation:
        """Return one conversation."""

    def delete(self, conversation_id: str, *, at: int, owner: Owner | None = None) -> None:
        """Remove a conversation and its turns permanently."""

    def discard(self, conversation_id: str, *, owner: Owner | None = None) -> None:
        """Remove a conversation as if it had never begun, if nothing was said in it; otherwise do nothing."""

    def append(
        self,
        conversation_id: str,
        message: ConversationMessage,
        *,
        turns: Iterable[WaitingTurn] = (),
        drops: Iterable[str] = (),
        finishes: TurnEnd | None = None,
        change: StateChange = NO_CHANGE,
        owner: Owner | None = None,
    ) -> StoredMessage:
        """Store a message with all its effects, or nothing: the turns it asks for, the queued turns it drops.

        `finishes` ends the running turn whose reply the message is. A message whose id is already stored is returned
        as it is stored, and nothing changes; if its speaker or content differs, this raises MessageDiffers.
        """

    def extend(
        self, conversation_id: str, messages: Sequence[ConversationMessage], *, owner: Owner | None = None
    ) -> None:
        """Store messages that ask for nothing, all or none. Each is as in append; many at once are faster."""

    def update(
        self,
        conversation_id: str,
        *,
        at: int,
        turns: Iterable[WaitingTurn] = (),
        drops: Iterable[str] = (),
        change: StateChange = NO_CHANGE,
        owner: Owner | None = None,
    ) -> None:
        """Queue turns for messages that are stored, drop queued turns and change the state, all or nothing."""

    def label(
        self,
        conversation_id: str,
        *,
        title: str | UnsetType | None = UNSET,
        archived_at: int | UnsetType | None = UNSET,
    ) -> None:
        """Change how a conversation is listed. Anybody may do this, since nothing in it changes."""

    def messages(
        self, conversation_id: str, *, after: int | None = None, before: int | None = None, limit: int | None = None
    ) -> list[StoredMessage]:
        """Return the messages between two sequence numbers, oldest first.

        At most `limit`: the oldest of them when `after` is given, and the newest otherwise.
        """

    def message(self, conversation_id: str, message_id: str) -> StoredMessage:
        """Return one message."""

    def envelopes(self, conversation_id: str, *, after: int, before: int) -> list[Envelope]:
        """Return who said the messages between two sequence numbers, and to whom, oldest first."""

    def speakers(self, conversation_id: str) -> list[Speaker]:
        """Return everyone who has spoken, once for every name they had."""

    def message_count(self, conversation_id: str) -> int:
        """Return how many messages there are; the number of the last one."""

    def highest_number(self, conversation_id: str) -> int:
        """Return the highest N of all message ids msg-N, or 0."""

    def highest_turn(self, conversation_id: str) -> int:
        """Return the highest of all turn ids that are numbers, or 0. This is fast, however many turns there are."""

    def start_turn(
        self,
        conversation_id: str,
        turn_id: str,
        *,
        owner: Owner,
        given: AssemblerOutput,
        at: int,
        change: StateChange = NO_CHANGE,
        order: PoolOrder | None = None,
    ) -> Turn:
        """Start a queued turn and store its prompt. If several processes try, one succeeds.

        With an order, workers are asked to run it in the same commit; only a store that they share can do that.
        """

    def adopt(self, conversation_id: str, turn_ids: Sequence[str], *, owner: Owner) -> None:
        """Make running turns the owner's that another one began, and that a worker continues."""

    def end_turn(
        self, conversation_id: str, end: TurnEnd, *, change: StateChange = NO_CHANGE, owner: Owner | None = None
    ) -> Turn:
        """End a running turn that has no reply; append ends those that have one."""

    def keep_output(self, conversation_id: str, turn_id: str, data: bytes, *, owner: Owner | None = None) -> None:
        """Add to what a running turn has written, so that it is not lost if the process is killed.

        It is part of the turn's record until the turn ends with all of its output, or is marked as interrupted. Other
        than everything else, it may be lost by a power cut.
        """

    def requeue(
        self,
        conversation_id: str,
        turn_id: str,
        turn: WaitingTurn,
        *,
        at: int,
        change: StateChange = NO_CHANGE,
        owner: Owner | None = None,
    ) -> Turn:
        """Put a new turn first in the queue that retries one that failed, was cancelled or interrupted, once."""

    def reorder(
        self,
        conversation_id: str,
        turn_ids: Sequence[str],
        *,
        change: StateChange = NO_CHANGE,
        owner: Owner | None = None,
    ) -> None:
        """Put queued turns first in the queue, in this order, regardless of their intents."""

    def give_again(self, conversation_id: str, turn_id: str, *, owner: Owner, given: AssemblerOutput) -> None:
        """Replace the prompt of a running turn, whose agent has not taken the first one."""

    def memory(self, conversation_id: str, member: str, *, up_to: int | None = None) -> MemberMemory | None:
        """Return the session that a member's last turn left, or its last one up to a message; None if none did."""

    def memories(self, conversation_id: str, *, turn_ids: Sequence[str] | None = None) -> list[MemberMemory]:
        """Return the session that every turn left, or every one of these turns, oldest first."""

    def add_changes(
        self,
        conversation_id: str,
        record: ChangeRecord,
        *,
        decision: Decision | None = None,
        owner: Owner | None = None,
    ) -> ChangeRecord:
        """Store what changed in a folder, or is about to, and return it with its number.

        What is begun is finished by finish_changes. The changes of a turn that has ended come after its reply, or after
        the message where it ended without one. A patch that is too large is stored without its last files.
        """

    def finish_changes(
        self, conversation_id: str, number: int, record: ChangeRecord, *, owner: Owner | None = None
    ) -> ChangeRecord:
        """Put a record that is done in the place of one that was begun: of the same kind, turn and folder.

        If it was not begun, or is done already, this raises StoreConflict.
        """

    def copy_changes(
        self, conversation_id: str, records: Sequence[ChangeRecord], *, owner: Owner | None = None
    ) -> None:
        """Store what changed in another conversation, under the same numbers, all or none. Its turns are not here."""

    def changes(
        self,
        conversation_id: str,
        *,
        turn_ids: Sequence[str] | None = None,
        first: int | None = None,
        last: int | None = None,
        patches: bool = True,
    ) -> list[ChangeRecord]:
        """Return what changed, oldest first: about some turns, or after some messages, by their numbers.

        Those about a turn are also the undo, the redo and the rewind of it. Without patches, this is faster.
        """

    def change(self, conversation_id: str, number: int) -> ChangeRecord | None:
        """Return the record with a number, with its patch; None if there is no such record."""

    def last_changes(self, conversation_id: str, folder: str) -> ChangeRecord | None:
        """Return the record of a folder that was done last, unless it is a copy from another conversation."""

    def begun_changes(self, conversation_id: str) -> list[ChangeRecord]:
        """Return the records that were begun and are not done, oldest first."""

    def add_check(self, conversation_id: str, result: CheckResult, *, owner: Owner | None = None) -> CheckResult:
        """Store a run of a check, mostly one that begins, and return it with its number, at the place of its turn."""

    def finish_check(self, conversation_id: str, result: CheckResult, *, owner: Owner | None = None) -> CheckResult:
        """Put a run that has ended in the place of the running one with its number.

        If it has not begun, has ended already, or is of another check, this raises StoreConflict.
        """

    def copy_checks(self, conversation_id: str, results: Sequence[CheckResult], *, owner: Owner | None = None) -> None:
        """Store what checks said in another conversation, under the same numbers, all or none."""

    def checks(
        self,
        conversation_id: str,
        *,
        turn_ids: Sequence[str] | None = None,
        first: int | None = None,
        last: int | None = None,
    ) -> list[CheckResult]:
        """Return what checks said, oldest first: after some turns, or after some messages, by their numbers."""

    def running_checks(self, conversation_id: str) -> list[CheckResult]:
        """Return the runs of checks that have not ended, oldest first."""

    def note_approval(
        self, conversation_id: str, record: ApprovalRecord, *, owner: Owner | None = None
    ) -> ApprovalRecord:
        """Store a question of a turn's agent, or the answer to it, and return it with its number and its hash.

        A question that is stored already, and an answer to one that was not asked or has an answer, raise
        StoreConflict: the first answer counts.
        """

    def copy_approvals(
        self, conversation_id: str, records: Sequence[ApprovalRecord], *, owner: Owner | None = None
    ) -> None:
        """Store what was asked and answered in another conversation, under the same numbers, all or none.

        They get new hashes, as the messages do.
        """

    def approvals(
        self,
        conversation_id: str,
        *,
        turn_ids: Sequence[str] | None = None,
        first: int | None = None,
        last: int | None = None,
    ) -> list[ApprovalRecord]:
        """Return questions and answers, oldest first: of some turns, or after some messages, by their numbers."""

    def open_approvals(self, conversation_id: str) -> list[ApprovalRecord]:
        """Return the questions of running turns that have no answer, oldest first."""

    def decisions(self, conversation_id: str) -> list[Decision]:
        """Return what people decided, oldest first."""

    def turns(self, conversation_id: str, *, message_id: str | None = None) -> list[Turn]:
        """Return all turns, also ended ones, or those that one message asked for, oldest first."""

    def turns_asked_by(self, conversation_id: str, *, first: int, last: int) -> list[Turn]:
        """Return the turns that these messages asked for, by their numbers, in the order of the messages."""

    def unanswered(self, conversation_id: str, *, first: int, last: int) -> list[Turn]:
        """Return the turns that ended without a reply after one of these messages, by their numbers, in their order."""

    def queued(self, conversation_id: str) -> list[Turn]:
        """Return the waiting turns: those put first, then in order of arrival. TurnQueue orders them by intent."""

    def running(self, conversation_id: str) -> list[Turn]:
        """Return the turns that were started and have not ended."""

    def turn(self, conversation_id: str, turn_id: str) -> Turn:
        """Return one turn."""

    def record(self, conversation_id: str, turn_id: str, *, prompt: bool = True) -> TurnRecord | None:
        """Return the prompt, unless nobody wants it, and the output of a turn; None if it never started."""

    def short_record(self, conversation_id: str, turn_id: str, *, most: int) -> TurnRecord | None:
        """Return the output of a turn that has ended, without its prompt, if it is not longer than `most` bytes.

        None if it has more, or cannot be read: a reader who asks only whether there is anything continues.
        """

    def claim(self, conversation_id: str, owner: Owner, *, is_alive: IsAlive) -> bool:
        """Become the owner, unless another owner is alive: `conversation(…).owner` says which.

        The owner also gets a lock that the system frees when its process dies, where that is possible.
        """

    def is_locked(self, owner: Owner) -> bool | None:
        """Return whether an owner's process still holds its lock; None if there is no such lock."""

    def beat(self, conversation_id: str, owner: Owner, *, at: int) -> None:
        """Record that the owner is alive, for those who cannot see its lock. Costs little; a power cut may lose it."""

    def release(self, conversation_id: str, owner: Owner) -> None:
        """Stop being the owner; nothing if that is somebody else by now."""

    def recover(self, conversation_id: str, *, at: int, owner: Owner | None = None) -> list[Turn]:
        """Mark running turns that the owner did not start as interrupted, and return them."""

    def search(self, query: str, *, conversation_id: str | None = None, limit: int = 20) -> list[Found]:
        """Return the newest messages that hold every word of the query.

        A word also finds longer words that begin with it. Chinese, Japanese and Korean are found anywhere. Text in
        double quotes, or without spaces, must occur exactly as it is written.
        """

    def fsck(self, conversation_id: str | None = None) -> list[Finding]:
        """Return what is wrong with one conversation, or with all and the file they are in.

        Changes nothing. If anything is damaged, this store stops writing.
        """

    def repair(self, conversation_id: str, *, owner: Owner | None = None) -> list[Finding]:
        """Mend a conversation that is stuck, and return what was wrong. What is damaged stays as it is."""

    def close(self) -> None:
        """Close the store. Closing twice is harmless."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...
