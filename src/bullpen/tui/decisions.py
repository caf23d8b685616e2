"""What wants a person's decision, and the choices. Pure, given the conversation as it stands."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import HandOverMissed

Choice = Literal["go_on", "retry", "skip", "hand_over", "drop_all", "leave_it"]

WORDS: dict[Choice, tuple[str, str]] = {
    "go_on": ("F5", "Go on"),
    "retry": ("F6", "Retry"),
    "skip": ("F7", "Skip"),
    "hand_over": ("F8", "Hand over"),
    "drop_all": ("", "Drop the queue"),
    "leave_it": ("F7", "Leave it"),
}


class Wanted(Struct, frozen=True, kw_only=True):
    """A decision that is wanted."""

    text: str
    choices: tuple[Choice, ...]
    is_failure: bool = False


def wanted(
    conversation: Conversation, told: Mapping[str, str], missed: HandOverMissed | None, trouble: str = ""
) -> Wanted | None:
    """Return the most urgent decision. `told` is what was said about turns that ended without a reply."""
    if trouble:
        return Wanted(text=trouble, choices=("leave_it",), is_failure=True)
    if conversation.undecided:
        turn = conversation.undecided[-1]
        others = len(conversation.undecided) - 1
        text = told.get(turn.id) or f"{turn.member} did not finish turn {turn.id}."
        more = f" ({others} more like this.)" if others else ""
        return Wanted(text=f"{text}{more}", choices=("retry", "skip", "hand_over"), is_failure=True)
    if conversation.paused is not None:
        choices: tuple[Choice, ...] = ("go_on", "drop_all") if conversation.waiting else ("go_on",)
        return Wanted(text=conversation.paused, choices=choices)
    if conversation.held:
        count = len(conversation.held)
        text = f"{count} turn{'s' * (count != 1)} from before the pause {'are' if count != 1 else 'is'} held."
        return Wanted(text=text, choices=("go_on", "drop_all"))
    if missed is not None:
        return Wanted(text=missed.text, choices=("hand_over", "leave_it"))
    return None
