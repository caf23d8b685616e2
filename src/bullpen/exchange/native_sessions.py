"""A session that a person had with a CLI, as the memory of the member that runs it: it continues a copy."""

from pathlib import Path

from bullpen.agents.registry import agent_spec
from bullpen.agents.session_file import is_session_id
from bullpen.conversation.memories import BYTES_PER_TOKEN, digest
from bullpen.exchange.cli_sessions.finding import READERS, CliSession
from bullpen.memory import MemberMemory, Memory
from bullpen.team.team import Member

PIECE = 1024 * 1024


def memory_of(session: CliSession, member: Member | None) -> MemberMemory | None:
    """Return what the session holds: all messages that were imported; None if the agent has said nothing in it.

    None also if a member was named that runs another CLI, or if the file calls the session what cannot be an id.
    Whether a copy can be continued is decided before its turn.
    """
    spec = agent_spec(READERS[session.cli].agent)
    replies = [number for number, message in enumerate(session.messages, start=1) if not message.by_person]
    runs_it = member is None or (bool(member.agent) and agent_spec(member.agent).name == spec.name)
    if spec.sessions is None or not replies or not runs_it or not is_session_id(session.id):
        return None
    asked_for = member.model if member else None
    memory = Memory(
        session_id=session.id,
        turns=len(replies),
        began_at=session.messages[0].at,
        since=1,
        seen_to=len(session.messages),
        agent=spec.name,
        folder=session.folder,
        # Who asks for no model gets the usual one, as the person did.
        model=asked_for and (session.model or asked_for),
        visibility=member.visibility if member else "all",
        task=digest(None),
        file=session.mark,
        tokens=session.mark.size // BYTES_PER_TOKEN,
        used=session.used,
        is_shortened=any(_has(session.file, words.encode()) for words in spec.sessions.shortened),
    )
    return MemberMemory(turn_id="", reply_id=f"msg-{replies[-1]}", memory=memory)


def _has(file: Path, words: bytes) -> bool:
    """Return whether a file contains some words; a piece of it is in memory at a time."""
    before = b""
    with file.open("rb") as opened:
        while piece := opened.read(PIECE):
            if words in before + piece:
                return True
            before = piece[-len(words) :]
    return False
