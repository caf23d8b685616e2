"""The line before the wall: from a share of a budget or a quota on, a stand-in takes a member's turns. Pure."""

from bullpen.routing.budgets import budget_share
from bullpen.routing.progress import Progress
from bullpen.team.stand_ins import program_key
from bullpen.team.team import Member
from bullpen.text.numbers import moment


def why_spared(progress: Progress, member: Member, now: int) -> str:
    """Return why a member's own program is spared, and until when if that is known; nothing if it is not spared."""
    line = member.stand_in_at
    if line is None:
        return ""
    quota = progress.quotas.get(program_key(member))
    if quota is not None and quota.until > now and quota.used >= line:
        return f" until {moment(quota.until)}: {_percent(quota.used)} of its quota is used"
    share = budget_share(progress, member)
    return f": {_percent(share)} of its budget is used" if share is not None and share >= line else ""


def _percent(share: float) -> str:
    return f"{int(100 * share + 1e-9)} %"
