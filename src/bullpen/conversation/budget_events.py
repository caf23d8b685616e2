"""The events about budgets: one is used up and people are asked, or a person raised one."""

from msgspec import Struct


class BudgetReached(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="budget_reached", tag_field="type"):
    """A budget is used up: turns that count for it wait until a person raises it or drops them."""

    member: str = ""
    """Whose budget; empty: the whole conversation's."""
    text: str


class BudgetRaised(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="budget_raised", tag_field="type"):
    """A person raised a budget."""

    member: str = ""
    """Whose budget; empty: the whole conversation's."""
    text: str
    by: str = ""
    """Who decided it."""
