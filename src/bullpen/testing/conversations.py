"""A small example conversation with every feature, always the same, for tests and docs."""

from bullpen.context.manager import ContextManager
from bullpen.context.prompt import AssemblerOutput
from bullpen.context.snapshot import ContextSnapshot
from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import Owner, Store, TurnEnd
from bullpen.store.packing import StreamPacker
from bullpen.turn_events import Failed, Usage

EXAMPLE_ID = "quiet-river-4f2a"
EXAMPLE_TEAM = """\
name = "Builders"
lead = "max"
task = "Build the login."

[[member]]
name = "kai"
display_name = "Kai"
type = "human"

[[member]]
name = "max"
display_name = "Max"
type = "ai"
agent = "claude"
window = 3

[[member]]
name = "sarah"
display_name = "Sarah"
type = "ai"
agent = "codex"
window = 3
max_bytes = 300
"""

KAI = Speaker(role_id="kai", role_name="Kai", type="human")
MAX = Speaker(role_id="max", role_name="Max", type="ai", role_title="Architect")
SARAH = Speaker(role_id="sarah", role_name="Sarah", type="ai", role_title="Reviewer")
AGENT_TYPES = {"max": "claude-code", "sarah": "openai-codex"}
BUDGETS = {"max": 786_432, "sarah": 300}

OWNER = Owner(token="example", pid=1, start_time=1, boot_id="example")  # noqa: S106

# 2025-03-03, 09:00 UTC, and a minute for each message.
BEGINNING = 1_740_992_400_000
MINUTE = 60_000

SAID = (
    (KAI, "Where do we start?", ("max",)),
    (MAX, "With the login: one form, one cookie, and a test for each.", ("kai",)),
    (KAI, "Cookie or token? 你怎么看?", ("max",)),
    (MAX, "A cookie.\n\n    set_cookie(🍪)\n\nI have written " + "a long report about cookies, " * 4, ("sarah",)),
    (KAI, "Sarah, please review it, and Max, please write the test.", ("sarah", "max")),
    (SARAH, "The cookie needs SameSite.", ("kai",)),
)


def write_example(store: Store, conversation_id: str = EXAMPLE_ID) -> None:
    """Store the conversation: six messages, and turns that succeeded (1 to 3), failed (4) or are waiting (5)."""
    store.create(
        conversation_id, team="Builders", team_file=EXAMPLE_TEAM, started_at=BEGINNING, team_task="Build the login."
    )
    store.claim(conversation_id, OWNER, is_alive=lambda _: False)
    messages = [_message(number) for number in range(1, len(SAID) + 1)]
    store.append(conversation_id, messages[0], turns=[_turn("1", "max", messages[0])], owner=OWNER)
    _answer(store, conversation_id, "1", "max", messages[:1], messages[1])
    store.append(conversation_id, messages[2], turns=[_turn("2", "max", messages[2])], owner=OWNER)
    _answer(store, conversation_id, "2", "max", messages[:3], messages[3])
    asked = messages[4]
    store.append(conversation_id, asked, turns=[_turn("3", "sarah", asked), _turn("4", "max", asked)], owner=OWNER)
    _start(store, conversation_id, "4", "max", messages[:5])
    _answer(store, conversation_id, "3", "sarah", messages[:5], messages[5])
    failure = Failed(
        kind="quota", message="The quota is used up until 11:00.", hint="Wait, or hand over.", partial_text="Test 1: "
    )
    end = TurnEnd(turn_id="4", state="failed", at=asked.timestamp + 30_000, failure=failure, command=("claude", "-p"))
    store.end_turn(conversation_id, end, owner=OWNER)
    store.update(conversation_id, at=messages[5].timestamp, turns=[_turn("5", "max", messages[5])], owner=OWNER)
    store.release(conversation_id, OWNER)


def _message(number: int) -> ConversationMessage:
    speaker, content, addressees = SAID[number - 1]
    return ConversationMessage(
        id=f"m{number}",
        content=content,
        speaker=speaker,
        timestamp=BEGINNING + (number - 1) * MINUTE,
        routing=Routing(resolved_addressees=addressees),
    )


def _turn(turn_id: str, member: str, message: ConversationMessage) -> WaitingTurn:
    return WaitingTurn(id=turn_id, member=member, message_id=message.id)


def _start(store: Store, conversation_id: str, turn_id: str, member: str, history: list[ConversationMessage]) -> None:
    at = history[-1].timestamp + 1000
    store.start_turn(conversation_id, turn_id, owner=OWNER, given=prompt_for(member, history), at=at)


def _answer(
    store: Store,
    conversation_id: str,
    turn_id: str,
    member: str,
    history: list[ConversationMessage],
    reply: ConversationMessage,
) -> None:
    _start(store, conversation_id, turn_id, member, history)
    stream = StreamPacker()
    stream.feed(f'{{"type": "result", "turn": "{turn_id}"}}\n\x1b[31m'.encode())
    end = TurnEnd(
        turn_id=turn_id,
        state="done",
        at=history[-1].timestamp + 13_500,
        usage=Usage(input_tokens=1200, output_tokens=85, cached_tokens=900, cost_usd=0.0123),
        command=(AGENT_TYPES[member], "--json", "-"),
        stream=stream.finish(),
    )
    store.append(conversation_id, reply, finishes=end, owner=OWNER)


def prompt_for(member: str, history: list[ConversationMessage]) -> AssemblerOutput:
    """Return what a member is given to answer the last message of a history."""
    manager = ContextManager(context_window_size=3, max_bytes=BUDGETS[member])
    manager.import_snapshot(ContextSnapshot(messages=history, team_task="Build the login."))
    agent_type = AGENT_TYPES[member]
    source = manager.get_context_for_agent(member, agent_type, system_instruction=f"You are {member.capitalize()}.")
    return manager.assemble_prompt(agent_type, source)
