"""A session of a CLI as a conversation: who in the team said what."""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from bullpen.agents.registry import agent_spec
from bullpen.conversation.consequences import speaker_of
from bullpen.errors import BullpenError, InvalidImport, UnknownMember
from bullpen.exchange.cli_sessions.finding import READERS, CliSession
from bullpen.exchange.importing import Imported
from bullpen.exchange.native_sessions import memory_of
from bullpen.messages import ConversationMessage, Speaker
from bullpen.routing.resolver import Resolver, Unresolved
from bullpen.team.team import Member, Team

IMPORTED_FROM = "importedFrom"
"""The field of a conversation that says which session it was, and what its file was then: its agent can continue it."""
PERSON = Speaker(role_id="you", role_name="you", type="human")


class Cast(Struct, frozen=True, kw_only=True):
    """Who speaks in a session."""

    person: Speaker
    agent: Speaker
    member: Member | None = None
    """Who the agent is in the team; None: nobody."""


def cast_of(cli: str, team: Team | None, named: str | None = None) -> Cast:
    """Return the team's person and the member that runs this CLI, if there is exactly one, or the one that is named.

    Without such a member, the agent is called as the CLI is, and is not in the team.
    """
    person = speaker_of(team.people[0]) if team is not None and team.people else PERSON
    member = _member(cli, team, named)
    if member is None:
        return Cast(person=person, agent=Speaker(role_id=cli, role_name=cli, type="ai"))
    return Cast(person=person, agent=speaker_of(member), member=member)


def imported_session(session: CliSession, cast: Cast) -> Imported:
    """Return a session as it is stored, or raise InvalidImport if nothing was said in it."""
    if not session.messages:
        raise InvalidImport(f"nobody said anything in the session {session.id}")
    about = {
        "cli": session.cli,
        "sessionId": session.id,
        "folder": session.folder,
        "file": str(session.file),
        "fileMark": msgspec.to_builtins(session.mark),
        "member": cast.agent.role_id,
        "messages": len(session.messages),
    }
    memory = memory_of(session, cast.member)
    return Imported(
        messages=list(_messages(session, cast)),
        team="",
        team_task=None,
        started_at=session.messages[0].at,
        extra={IMPORTED_FROM: about},
        sessions={} if memory is None else {cast.agent.role_id: memory},
    )


def _messages(session: CliSession, cast: Cast) -> Iterator[ConversationMessage]:
    for number, message in enumerate(session.messages, start=1):
        yield ConversationMessage(
            id=f"msg-{number}",
            content=message.text,
            speaker=cast.person if message.by_person else cast.agent,
            timestamp=message.at,
        )


def _member(cli: str, team: Team | None, named: str | None) -> Member | None:
    if team is None:
        if named is not None:
            raise BullpenError(
                f"Nobody can be {named!r} without a team file: name one with --team. Nothing was written."
            )
        return None
    if named is not None:
        return _named(team, named)
    fitting = [member for member in team.agents if member.agent and agent_spec(member.agent).name == READERS[cli].agent]
    return fitting[0] if len(fitting) == 1 else None


def _named(team: Team, name: str) -> Member:
    found = Resolver(team).resolve(name)
    if isinstance(found, Unresolved):
        raise UnknownMember(str(found))
    if found.type != "ai":
        raise UnknownMember(
            f"{found.name} is not an agent: --as names the member who is the agent. Nothing was written."
        )
    return found
