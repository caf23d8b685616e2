"""What holds each member of a team on this machine, in words for `check`, `doctor` and the question of trust.

Only of members with `sandbox = true`: for a team without one, nothing of it is loaded or tried.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bullpen.sandbox.rules import SandboxRules
from bullpen.team.team import Member, Team
from bullpen.text.names import listed

if TYPE_CHECKING:
    from bullpen.sandbox.mechanism import Mechanism

NO_NETWORK_NEEDS_COMMAND = (
    "needs a command: a CLI must reach its vendor, and the sandbox cannot yet tell that from others"
)


def rules_of(member: Member) -> SandboxRules:
    """Return what the team file says of a member's sandbox."""
    return SandboxRules(is_on=member.sandbox, writable=member.writable, network=member.network)


def is_member_held(member: Member) -> bool:
    """Return whether the system holds a member here."""
    return _is_to_be_held(member) and _mechanism().works


def sandbox_words(member: Member) -> str:
    """Return what the question of trust says of a member's sandbox: nothing, if the team file says nothing of it."""
    if not member.sandbox:
        return f"by no sandbox: {without}" if (without := of_no_effect(member)) else ""
    if member.pool:
        return ""
    if member.permissions == "full":
        return "by no sandbox: full permissions are not held"
    if not _mechanism().works:
        return f"by no sandbox here, so it is not started: {_mechanism().why_not}"
    where = "nothing" if member.permissions == "read-only" else "its folder"
    said = [f"by a sandbox, in which it can write {where} and its CLI's own files"]
    if member.writable:
        said.append(f"which may also write {', '.join(member.writable)}")
    if not member.network:
        said.append("without the network")
    return "; ".join(said)


def of_no_effect(member: Member) -> str:
    """Return a clause on what the team file says of a sandbox that is not there."""
    keys = [key for key, is_said in (("writable", bool(member.writable)), ("network", not member.network)) if is_said]
    if not keys or member.sandbox:
        return ""
    return f"{listed(keys)} {'has' if len(keys) == 1 else 'have'} no effect without sandbox = true"


def what_fails_within(member: Member) -> str:
    """Return what its CLI cannot do in a sandbox yet."""
    if not _is_to_be_held(member):
        return ""
    from bullpen.agents.cli_files import own_files
    from bullpen.agents.registry import spec_for

    return own_files(spec_for(member.agent, member.command))[0].fails


def unheld_sentences(team: Team) -> Iterator[str]:
    """Yield a sentence for each reason for which members are not held here that are to be."""
    here = [member for member in team.agents if member.sandbox and not member.pool]
    wanted = [member.name for member in here if member.permissions != "full"]
    if wanted and not (by := _mechanism()).works:
        hint = f" {by.hint}" if by.hint else ""
        yield f"No sandbox can hold {listed(wanted)} here, so nothing of theirs is started: {by.why_not}.{hint}"
    if full := [member.name for member in here if member.permissions == "full"]:
        yield f"No sandbox holds {listed(full)}: full permissions are not held."


def held_sentences(team: Team) -> Iterator[str]:
    """Yield who is held here, and who is not."""
    if held := [member.name for member in team.agents if is_member_held(member)]:
        yield f"A sandbox holds {listed(held)}: bubblewrap."
    yield from unheld_sentences(team)
    for member in team.agents:
        if without := of_no_effect(member):
            yield f"No sandbox holds {member.name}: {without}."


def _is_to_be_held(member: Member) -> bool:
    return not member.pool and rules_of(member).hold(member.permissions)


def _mechanism() -> "Mechanism":
    # A team without a sandbox does not load it.
    from bullpen.sandbox.mechanism import mechanism

    return mechanism()
