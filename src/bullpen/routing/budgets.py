"""Budgets: what a conversation, and each member in it, may use altogether, and how much of that is used. Pure.

The limits count since a person last spoke, and end loops. A budget counts from a conversation's first turn, and holds
until a person raises it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from bullpen.routing.progress import BudgetNote, MemberUsage, Progress
from bullpen.routing.queue import WaitingTurn
from bullpen.team.team import Budget, Member, Team
from bullpen.text.numbers import counted, duration, money, tokens

BudgetKind = Literal["turns", "tokens", "cost_usd", "minutes"]
KINDS: tuple[BudgetKind, ...] = ("turns", "tokens", "cost_usd", "minutes")
NOTICE_SHARE = 0.8
"""People are told when so much of a budget is used."""
NOTHING: Mapping[str, MemberUsage] = {}


class BudgetUse(Struct, frozen=True, kw_only=True):
    """How much of one budget is used."""

    member: str = ""
    """Whose it is; empty: the whole conversation's."""
    kind: BudgetKind
    amount: float
    """What the team file gives."""
    cap: float
    """What that was raised to."""
    used: float
    is_estimate: bool = False

    @property
    def key(self) -> str:
        """What tells it from the other budgets of its conversation."""
        return f"{self.kind} {self.member}".strip()

    @property
    def share(self) -> float:
        """How much of it is used: 1.0 is all of it."""
        return self.used / self.cap

    @property
    def is_reached(self) -> bool:
        """Whether nothing is left of it."""
        return self.used >= self.cap

    @property
    def ends_turns(self) -> bool:
        """Whether it ends turns that run when nothing is left: a turn that was let in may be finished."""
        return self.is_reached and self.kind != "turns"

    @property
    def sentence(self) -> str:
        """How much of it is used, in words."""
        who, whose = (self.member, "its") if self.member else ("The agents", "the conversation's")
        have = "has" if self.member else "have"
        used, cap = self.in_words(self.used), self.in_words(self.cap)
        verb = "worked for" if self.kind == "minutes" else "taken" if self.kind == "turns" else "used"
        if self.is_reached:
            return f"{who} {have} {verb} {used}: {whose} budget of {cap} is used up."
        return f"{who} {have} {verb} {used} of {whose} budget of {cap} ({int(100 * self.share)} %)."

    def in_words(self, number: float) -> str:
        """Return an amount of what it counts."""
        match self.kind:
            case "turns":
                return counted(int(number), "turn")
            case "tokens":
                return tokens(int(number))
            case "cost_usd":
                return money(number, is_estimate=self.is_estimate and number == self.used)
            case "minutes":
                return duration(60 * number)

    def is_of(self, member: str) -> bool:
        """Return whether a member's turns count for it."""
        return self.member in ("", member)


def budget_uses(team: Team, progress: Progress, now: Mapping[str, MemberUsage] = NOTHING) -> tuple[BudgetUse, ...]:
    """Return how much of every budget is used, the conversation's first; `now` is what running turns have used so far.

    One that a person has lifted for this conversation is left out.
    """
    together = sum([*progress.used.values(), *now.values()], start=MemberUsage())
    found = _uses(progress, "", team.budget, together)
    for member in team.agents:
        found += member_uses(progress, member, now.get(member.name))
    return tuple(found)


def member_uses(progress: Progress, member: Member, now: MemberUsage | None = None) -> list[BudgetUse]:
    """Return how much a member has used of its own budget; `now` is what its running turns have used so far."""
    used = progress.used.get(member.name, MemberUsage()) + (now or MemberUsage())
    return _uses(progress, member.name, member.budget, used)


def budget_share(progress: Progress, member: Member) -> float | None:
    """Return how much of its own budget a member has used, of the kind of which it has used most; None: it has none."""
    return max((one.share for one in member_uses(progress, member)), default=None)


def _uses(progress: Progress, member: str, budget: Budget, used: MemberUsage) -> list[BudgetUse]:
    counts: dict[BudgetKind, float] = {
        "turns": used.turns - used.unstarted,
        "tokens": used.tokens,
        "cost_usd": used.cost_usd or 0.0,
        "minutes": used.seconds / 60,
    }
    found = []
    for kind, count in counts.items():
        amount: float | None = getattr(budget, kind)
        if amount is not None:
            one = BudgetUse(
                member=member, kind=kind, amount=amount, cap=amount, used=count, is_estimate=used.is_estimate
            )
            note = progress.budgets.get(one.key, BudgetNote())
            if not note.is_lifted:
                found.append(replace(one, cap=max(amount, note.cap or 0.0)))
    return found


def reached_by(uses: Iterable[BudgetUse], member: str) -> BudgetUse | None:
    """Return the budget that lets no turn of a member begin, if there is one."""
    return next((one for one in uses if one.is_of(member) and one.is_reached), None)


def that_fit(turns: Sequence[WaitingTurn], uses: Sequence[BudgetUse]) -> tuple[WaitingTurn, ...]:
    """Return those of several turns that may begin together: each counts for what the next one may still take."""
    left = {one.key: one.cap - one.used for one in uses if one.kind == "turns"}
    fitting = []
    for turn in turns:
        own = [one for one in uses if one.is_of(turn.member)]
        counting = [one.key for one in own if one.kind == "turns"]
        if not any(one.is_reached for one in own) and all(left[key] > 0 for key in counting):
            fitting.append(turn)
            for key in counting:
                left[key] -= 1
    return tuple(fitting)


def untold(uses: Iterable[BudgetUse], progress: Progress) -> tuple[BudgetUse, ...]:
    """Return the budgets of which most is used, and of which people do not know that yet."""
    told = {key: note.told_of for key, note in progress.budgets.items()}
    return tuple(one for one in uses if one.share >= NOTICE_SHARE and told.get(one.key) != one.cap)


def with_told(progress: Progress, uses: Iterable[BudgetUse]) -> Progress:
    """Return the progress after people were told that most of these budgets is used."""
    told = {one.key: replace(progress.budgets.get(one.key, BudgetNote()), told_of=one.cap) for one in uses}
    return replace(progress, budgets={**progress.budgets, **told})


def with_raised(progress: Progress, uses: Iterable[BudgetUse], *, always: bool) -> Progress:
    """Return the progress after a person raised budgets: once by the same amount again, or for good.

    What was used beyond a cap is not taken from what is given now.
    """
    raised = {
        one.key: BudgetNote(is_lifted=True) if always else BudgetNote(cap=max(one.cap, one.used) + one.amount)
        for one in uses
    }
    return replace(progress, budgets={**progress.budgets, **raised})


def members_spent(team: Team, uses: Sequence[BudgetUse]) -> tuple[str, ...]:
    """Return the agents of which no turn may begin."""
    return tuple(agent.name for agent in team.agents if reached_by(uses, agent.name))


def asked_about(uses: Iterable[BudgetUse], members: Collection[str]) -> tuple[BudgetUse, ...]:
    """Return the budgets that are used up and in the way of members who have a turn that waits or was ended."""
    return tuple(one for one in uses if one.is_reached and any(one.is_of(member) for member in members))


def to_raise(uses: Sequence[BudgetUse], owners: Collection[str] | None) -> tuple[BudgetUse, ...]:
    """Return the budgets that a person means who raises some: what is used up, else what is nearly so."""
    meant = [one for one in uses if owners is None or one.member in owners]
    reached = [one for one in meant if one.is_reached]
    return tuple(reached or [one for one in meant if one.share >= NOTICE_SHARE])


def members_waiting(team: Team, turns: Iterable[WaitingTurn]) -> frozenset[str]:
    """Return the agents that have one of these turns."""
    return frozenset(turn.member for turn in turns) & {agent.name for agent in team.agents}
