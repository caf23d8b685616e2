"""TurnSession: the session of one turn, from taking it to leaving it; files and locks belong in the store's thread."""

from collections.abc import Callable

from msgspec.structs import replace

from bullpen.agents.runner import Reply
from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.memories import Memories
from bullpen.conversation.prepared_turn import PreparedTurn, SessionPlan, in_session
from bullpen.conversation.state import ConversationState
from bullpen.memory import Memory
from bullpen.routing.progress import Progress
from bullpen.turn_events import Event, Started, Usage

Prepare = Callable[[SessionPlan | None], PreparedTurn]
"""Returns what the agent is given for a turn in a session."""


class TurnSession:
    """The session in which a turn runs; nothing for an agent without a memory of its own."""

    def __init__(
        self, state: ConversationState, memories: Memories, agent: MemberAgent, *, is_apart: bool = False
    ) -> None:
        """Run a turn in the member's session; one that is apart is run without, and the member knows nothing of it."""
        self._is_apart = is_apart
        self._state = state
        self._memories = memories
        self._agent = agent
        self._plan: SessionPlan | None = None

    async def enter(self, progress: Progress, prepare: Prepare) -> PreparedTurn:
        """Decide for a session, take it, and prepare the turn in it."""
        return await self._state.read_in_store(self._enter, progress, prepare)

    def _enter(self, progress: Progress, prepare: Prepare) -> PreparedTurn:
        # In the store's thread: the one who waits for it may be cancelled, and the session is taken all the same.
        self._plan = None if self._is_apart else self._memories.enter(self._agent, progress)
        prepared = prepare(self._plan)
        return self._with_fresh(prepared, prepare) if self._agent.is_elsewhere else prepared

    def _with_fresh(self, prepared: PreparedTurn, prepare: Prepare) -> PreparedTurn:
        """Return a turn with the same one in a new session: where the session's file is, one of them is chosen."""
        plan = self._memories.rebuilt(self._agent)
        if prepared.plan is None or plan is None:
            return prepared
        if prepared.plan.left is not None:
            return replace(prepared, fresh=prepare(plan))
        return replace(prepared, fresh=replace(prepared, plan=plan, output=in_session(prepared.output, plan.use)))

    def adopt(self, prepared: PreparedTurn) -> None:
        """Continue with what is known of a turn that began under another owner, or that its worker has told."""
        self._plan = prepared.plan

    async def begin_again(self, reason: str, prepare: Prepare) -> PreparedTurn:
        """Begin a new session in the place of one that the CLI could not continue, and prepare the turn in it."""
        self.leave()
        # It is shown within a sentence.
        self._plan = self._memories.rebuilt(self._agent, reason.removesuffix("."))
        return await self._state.in_store(prepare, self._plan)

    @property
    def used_before(self) -> Usage | None:
        """What earlier turns have used, if the CLI adds that to what it reports."""
        left = self._plan.left if self._plan else None
        return None if left is None else left.memory.used

    def on_event(self, event: Event) -> None:
        """Let others use a session as soon as it is copied: when it says that it starts, a CLI has read all of it."""
        if isinstance(event, Started) and self._plan is not None and self._plan.use.origin == "forked":
            self.leave()

    async def after(self, prepared: PreparedTurn, reply: Reply, usage: Usage | None, *, at: int) -> Memory | None:
        """Return what the session holds after a turn that ended well."""
        if self._plan is None or prepared.seen is None or (self._agent.is_elsewhere and reply.session is None):
            return None
        return await self._state.in_store(
            self._memories.after,
            *(self._agent, self._plan, prepared.seen, reply.started, usage),
            at=at,
            left=reply.session,
        )

    async def put_back(self) -> None:
        """Take out of the session what a turn left in it that did not end well, and leave it."""
        await self._state.in_store(self._put_back)

    def _put_back(self) -> None:
        if self._plan is not None:
            self._memories.put_back(self._agent, self._plan)
            self.leave()
            self._plan = None

    def leave(self) -> None:
        """Let others use the session."""
        if self._plan is not None:
            self._plan.release()
