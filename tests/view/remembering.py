"""A stored conversation in which max, who has a memory of its own, has answered in one session and then in another."""

from msgspec.structs import replace

from bullpen.context.manager import ContextManager
from bullpen.context.prompt import AssemblerOutput
from bullpen.context.snapshot import ContextSnapshot
from bullpen.memory import FileMark, Memory, SessionUse
from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import Owner, Store, TurnEnd

TEAM = """\
name = "Shop"

[[member]]
name = "kim"

[[member]]
name = "max"
agent = "claude"

[[member]]
name = "ada"
agent = "gemini"
"""
OWNER = Owner(token="remembering", pid=1, start_time=1, boot_id="remembering")
KIM = Speaker(role_id="kim", role_name="Kim", type="human")
MAX = Speaker(role_id="max", role_name="Max", type="ai")
BEGINNING = 1_740_992_400_000
MINUTE = 60_000
FIRST = "0f9d1c35-6a86-4b5e-9c3a-3f4d5e6f7a8b"
SECOND = "7c2b8e10-95d4-4e61-8a7f-1b2c3d4e5f60"
GONE = "the file of its session is gone"

# For each turn of max: its session, and how it got it.
SESSIONS = (
    (FIRST, SessionUse(origin="new", id=FIRST)),
    (FIRST, SessionUse(origin="resumed", id=FIRST, continues="1", turns=1)),
    (SECOND, SessionUse(origin="rebuilt", id=SECOND, reason=GONE)),
    (SECOND, SessionUse(origin="resumed", id=SECOND, continues="3", turns=1)),
)


def write_remembering(
    store: Store, conversation_id: str = "warm-river-1", *, turns: int = len(SESSIONS), team_path: str = ""
) -> str:
    """Store it: message 2n-1 of Kim is answered by message 2n of Max in turn n. Before the third, the file was lost."""
    store.create(conversation_id, team="Shop", team_file=TEAM, team_path=team_path, started_at=BEGINNING)
    store.claim(conversation_id, OWNER, is_alive=lambda _: False)
    said: list[ConversationMessage] = []
    began_at = BEGINNING
    for number, (session_id, use) in enumerate(SESSIONS[:turns], start=1):
        asked = _message(2 * number - 1, KIM, f"Question {number}", "max")
        said.append(asked)
        turn = WaitingTurn(id=str(number), member="max", message_id=asked.id)
        store.append(conversation_id, asked, turns=[turn], owner=OWNER)
        given = _given(said, use)
        store.start_turn(conversation_id, turn.id, owner=OWNER, given=given, at=asked.timestamp + 1000)
        reply = _message(2 * number, MAX, f"Answer {number}", "kim", parent=asked.id)
        said.append(reply)
        began_at = began_at if use.is_continued else reply.timestamp
        memory = Memory(
            session_id=session_id,
            origin=use.origin,
            reason=use.reason,
            turns=use.turns + 1,
            began_at=began_at,
            since=1,
            seen_to=2 * number - 1,
            agent="claude-code",
            folder="/shop",
            visibility="all",
            file=FileMark(size=48_000, digest="d" * 32),
            tokens=12_000,
        )
        end = TurnEnd(turn_id=turn.id, state="done", at=reply.timestamp, memory=memory)
        store.append(conversation_id, reply, finishes=end, owner=OWNER)
    store.release(conversation_id, OWNER)
    return conversation_id


def _message(number: int, speaker: Speaker, text: str, to: str, parent: str | None = None) -> ConversationMessage:
    routing = Routing(resolved_addressees=(to,), parent_message_id=parent)
    at = BEGINNING + number * MINUTE
    return ConversationMessage(id=f"msg-{number}", content=text, speaker=speaker, timestamp=at, routing=routing)


def _given(said: list[ConversationMessage], use: SessionUse) -> AssemblerOutput:
    """Return the prompt of a turn: all that was said, or only what is new where a session goes on."""
    # Its own last reply is in the session already.
    offered = said[-1:] if use.is_continued else said
    manager = ContextManager()
    manager.import_snapshot(ContextSnapshot(messages=offered, team_task=None))
    output = manager.assemble_prompt("claude-code", manager.get_context_for_agent("max", "claude-code"))
    report = replace(output.report, session=use, message_id=said[-1].id, context_ids=tuple(output.report.context_ids))
    return replace(output, report=report)
