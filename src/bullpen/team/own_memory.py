"""Whether a member has a memory of its own: its turns continue a session of its CLI; and if not, why."""

from bullpen.agents.registry import spec_for
from bullpen.agents.spec import UNKNOWN_SESSIONS, AgentSpec
from bullpen.errors import UnknownAgent
from bullpen.team.team import Member

NOT_IF_ASKED = 'with permissions = "ask" its program begins a session in every turn'


def why_shared(member: Member, spec: AgentSpec) -> str:
    """Return why a member has no memory of its own and gets the conversation again in every turn; nothing if it has."""
    sessions = spec.with_permissions(member.permissions).sessions
    if member.memory == "shared":
        return 'the team file says memory = "shared" or prompts = "specification"'
    if sessions is None:
        return spec.why_no_sessions if spec.sessions is None else NOT_IF_ASKED
    if member.memory == "own":
        return ""
    if not sessions.is_proven:
        return f"{member.agent} does not continue a session exactly as it was"
    # Another command may be any program, so only the team file can say that it keeps sessions as the CLI does.
    keeps = f'its command may not keep sessions; if it does as {member.agent} does, write memory = "own"'
    return keeps if member.command else ""


def why_shared_here(member: Member) -> str:
    """Return the same, for a member whose program may not be known here."""
    try:
        return why_shared(member, spec_for(member.agent, member.command, name=member.name))
    except UnknownAgent:
        return UNKNOWN_SESSIONS
