"""When a member's session must not go on: the rules, each with the reason that people are told. Pure, except for files.

A session that goes on wrongly is worse than none: the agent would not know what it has not seen. So whatever is not
certain begins a new session, built from the shared history.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from bullpen.agents.session_file import compared, find_session_file
from bullpen.agents.spec import SessionSpec
from bullpen.conversation.member_agent import MemberAgent
from bullpen.memory import Memory
from bullpen.text.numbers import tokens


def has_own_memory(agent: MemberAgent) -> bool:
    """Return whether a member's turns run in sessions that go on."""
    member, sessions = agent.member, agent.spec.sessions
    if sessions is None or member.memory == "shared":
        return False
    # Another command may be any program, so only the team file can say that it keeps sessions as the CLI does.
    return member.memory == "own" or (sessions.is_proven and not member.command)


def why_not(memory: Memory, agent: MemberAgent, sessions: SessionSpec) -> str:
    """Return why a session cannot go on, whatever is in its file; nothing if it can."""
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
    most = member.memory_tokens or sessions.most_tokens
    if memory.tokens > most:
        yield f"its session had grown to {tokens(memory.tokens)} tokens, and {tokens(most)} is the most"


def session_file(memory: Memory, sessions: SessionSpec, environment: Mapping[str, str]) -> tuple[Path | None, str]:
    """Return the file of a session, and why it cannot go on: nothing if it is as its last turn left it.

    The file comes with "longer" if only something was added to it: that may be what a turn left that ended badly.
    """
    file = find_session_file(sessions, environment, memory.session_id)
    if file is None:
        return None, "the file of its session is gone"
    try:
        match compared(file, memory.file):
            case "same":
                return file, ""
            case "longer":
                return file, "longer"
            case _:
                return None, "the file of its session is not what its last turn left"
    except OSError as error:
        return None, f"the file of its session cannot be read ({error.strerror})"
