"""Budgets as people see them: how much is used, and what they are asked when one is used up. Pure."""

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from bullpen.conversation.budgets import sentences
from bullpen.routing.budgets import BudgetKind, BudgetUse
from bullpen.view.choices import Choice, Decision

CONVERSATION = "conversation"
"""What people call the budget that all agents share."""


class BudgetView(Struct, frozen=True, kw_only=True):
    """How much of one budget is used."""

    member: str = ""
    """Whose it is; empty: the conversation's."""
    kind: BudgetKind
    used: float
    cap: float
    is_estimate: bool = False
    text: str
    """The same in a sentence."""


def budget_views(uses: Iterable[BudgetUse]) -> tuple[BudgetView, ...]:
    """Return how much of every budget is used."""
    return tuple(
        BudgetView(
            member=one.member,
            kind=one.kind,
            used=round(one.used, 6),
            cap=one.cap,
            is_estimate=one.is_estimate and one.kind == "cost_usd",
            text=one.sentence,
        )
        for one in uses
    )


def about_budgets(asked: Sequence[BudgetUse], waiting: Collection[str]) -> list[Decision]:
    """Return what people decide about budgets that are used up: one decision for each owner.

    `waiting` are the members with turns that wait.
    """
    owners = list(dict.fromkeys(one.member for one in asked))
    return [_about(owner, asked, waiting, is_only=len(owners) == 1) for owner in owners]


def _about(owner: str, asked: Sequence[BudgetUse], waiting: Collection[str], *, is_only: bool) -> Decision:
    own = [one for one in asked if one.member == owner]
    more = " and ".join(one.in_words(one.amount) for one in own)
    given, which = {"budget": owner or CONVERSATION}, "" if is_only else f" {owner or CONVERSATION}"
    once = Choice(
        action="raise",
        label="Raise once",
        typed=f"/raise once{which}",
        purpose=f"{more} more, then ask again",
        given={**given, "how": "once"},
    )
    always = Choice(
        action="raise",
        label="Raise always",
        typed=f"/raise always{which}",
        purpose="as much as it takes, and do not ask again in this conversation",
        given={**given, "how": "always"},
    )
    stop = Choice(
        action="drop",
        label="Stop",
        typed=f"/drop {owner}".rstrip(),
        purpose=f"remove the waiting turns of {owner}" if owner else "remove every waiting turn",
        given={"member": owner} if owner else {},
    )
    has_waiting = owner in waiting if owner else bool(waiting)
    return Decision(
        kind="budget",
        text=sentences(own, owner),
        member=owner,
        choices=(once, always, *((stop,) if has_waiting else ())),
    )
