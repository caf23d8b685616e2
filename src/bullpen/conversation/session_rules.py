"""When a member's session must not be continued, regardless of its file: the rules, each with a reason for people.

A session that continues wrongly is worse than none: the agent would not know what it has not seen. If anything is
uncertain, a new session begins, built from the shared history.
"""

from collections.abc import Iterator, Sequence

from bullpen.agents.spec import SessionSpec
from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.owner import BEAT_SECONDS
from bullpen.memory import Memory
from bullpen.store.base import Turn
from bullpen.team.own_memory import why_shared
from bullpen.text.numbers import tokens

UNKNOWN_END_MS = int(3 * BEAT_SECONDS * 1000)
"""A turn whose process was killed has ended this long, at most, after the process was last seen."""


def has_own_memory(agent: MemberAgent) -> bool:
    """Return whether a member's turns run in sessions that continue."""
    return not why_shared(agent.member, agent.spec)


def why_not(memory: Memory, agent: MemberAgent, sessions: SessionSpec) -> str:
    """Return why a session cannot be continued, regardless of its file; nothing if it can."""
    return next(_reasons(memory, agent, sessions), "")


def _reasons(memory: Memory, agent: MemberAgent, sessions: SessionSpec) -> Iterator[str]:
    member, folder = agent.member, str(agent.folder)
    if not memory.session_id:
        yield "its last turn left no session"
    if memory.agent != agent.spec.name:
        yield f"its agent was {memory.agent} and is {agent.spec.name} now"
    if sessions.is_bound_to_folder and memory.folder != folder:
        yield f"it worked in {memory.folder} and works in {folder} now"
    if not sessions.takes_other_model and memory.model != member.model:
        yield f"its model was {memory.model or 'the default'} and is {member.model or 'the default'} now"
    if memory.visibility != member.visibility:
        yield "what it may see has changed"
    if memory.is_shortened:
        yield "its CLI had replaced a part of its session with a summary"
    # A turn needs room, too: for what it is given, reads and writes.
    most = member.memory_tokens or memory.window * 3 // 4 or sessions.most_tokens
    if memory.tokens > most:
        yield f"its session had grown to {tokens(memory.tokens)}, more than the {tokens(most)} that it may have"


def why_not_after(turns: Sequence[Turn]) -> str:
    """Return why a session cannot be continued after these turns in it, which ended badly; nothing if it can.

    Each began where the session had been before. If that is what is wrong with it, every other turn would fail, too.
    """
    kinds = [turn.failure.kind if turn.failure else "" for turn in turns]
    if kinds[-1:] == ["session_lost"]:
        return "its CLI lost its session in its last turn"
    if kinds[-1:] == ["prompt_too_long"]:
        return "its last turn in its session was too long for its model"
    if len(kinds) > 1 and {"crashed", "protocol_broken"}.issuperset(kinds[-2:]):
        return "its last two turns in its session failed"
    return ""


def left_until(turns: Sequence[Turn]) -> int:
    """Return until when these turns, which ended badly, may have added to their session's file; 0: they have not.

    If somebody wrote to it later, that is a person, who continued the session with the CLI itself.
    """
    last = next(reversed(turns), None)
    if last is None or last.ended_at is None:
        return 0
    return last.ended_at + (UNKNOWN_END_MS if last.state == "interrupted" else 0)
