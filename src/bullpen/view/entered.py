"""What Enter does with what a person has typed: worked out once, for the line under a composer and for Enter itself."""

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from bullpen.conversation.conversation import Conversation
from bullpen.errors import BullpenError
from bullpen.text.asked_words import few
from bullpen.view.addressees import Addressees, addressees
from bullpen.view.choices import YES, Choice, Decision, with_key
from bullpen.view.command_arguments import OneAnswer
from bullpen.view.commands import Command, Typed, typed_choice
from bullpen.view.state import conversation_view
from bullpen.view.typed_answers import read_typed

YES_WORDS, NO_WORDS = ("y", "yes"), ("n", "no")
TOO_LONG = "→ shown when it is sent: the message is long"
CLOSED = "What you saw is not asked any more: this answers nothing."
JUST_CAME = "What waits for you has only just come, and was not answered. Press it again."
ANSWERS = {"yes": "Yes", "no": "No", "stop": "No, and stop"}
SCOPES = {
    "once": "this once",
    "turn": "for exactly this in this turn",
    "conversation": "for exactly this from now on in this conversation",
    "team": "for exactly this in every conversation of this team",
}


class Entered(Struct, frozen=True, kw_only=True):
    """What Enter does: a command or an answer, else a message if there is any text; or why it does nothing."""

    text: str = ""
    typed: Typed | None = None
    asked: Addressees | None = None
    """Whom a message asks, if that was worked out."""
    problem: BullpenError | None = None
    line: str = ""
    """The same for a person who has not pressed it yet; empty: nothing happens."""

    @property
    def command(self) -> Typed | None:
        """The command or the answer; None: a message. Raises what is wrong with it."""
        if self.problem is not None:
            raise self.problem
        return self.typed


def entered(
    conversation: Conversation,
    text: str,
    shown: Sequence[Decision],
    sender: str | None = None,
    more: Iterable[Command] = (),
) -> Entered:
    """Return what Enter does. `shown` is what the person saw when they began to write; `more` are the door's commands.

    Nothing that has come up since is answered by it.
    """
    try:
        if (choice := _choice(conversation, text, shown)) is not None:
            card = next(one for one in shown if choice in one.choices)
            does = chosen(choice, card)
            return does if _is_open(conversation, card) else replace(does, line=CLOSED)
        typed = read_typed(_as_command(conversation, text, shown), conversation.team, shown, more)
    except BullpenError as error:
        return Entered(text=text, problem=error, line=str(error))
    if typed is not None:
        return Entered(text=text, typed=typed, line=_line(conversation, typed))
    asked = addressees(conversation, text, sender)
    line = asked.line if asked is not None else TOO_LONG if text.strip() else ""
    return Entered(text=text, asked=asked, line=line)


def chosen(choice: Choice, card: Decision) -> Entered:
    """Return what a key on a card does."""
    if choice.lacks_name:
        raise BullpenError(f"Say which one: {choice.typed}")
    line = _about(choice.label, card) if card.kind == "question" else f"{choice.label}: {choice.purpose}"
    return Entered(text=f"{choice.key} {choice.label}", typed=typed_choice(choice), line=line)


def _choice(conversation: Conversation, text: str, shown: Sequence[Decision]) -> Choice | None:
    """Return the answer that was typed as the key or the word for it, if it was."""
    word = text.strip().casefold()
    now = conversation_view(conversation).decisions
    if (choice := _with_digit(word, shown, now)) is not None or word not in (*YES_WORDS, *NO_WORDS):
        return choice
    if any(card.is_about_doing for card in shown):
        return None
    keys = {card.key for card in shown}
    if any(card.kind in ("allow", "programs") and card.key not in keys for card in now) and not shown:
        raise BullpenError(JUST_CAME)
    return _meant(word, [card for card in now if card.key in keys])


def _with_digit(word: str, shown: Sequence[Decision], now: Sequence[Decision]) -> Choice | None:
    """Return the answer with this digit. What came meanwhile counts, too: it may be the one on the screen."""
    choice, keys = with_key(word, shown), {card.key for card in now}
    if choice is not None and any(choice in card.choices and card.key in keys for card in shown):
        with_key(word, [*(card for card in shown if card.key not in keys), *now])
    return choice


def _as_command(conversation: Conversation, text: str, shown: Sequence[Decision]) -> str:
    """Return a text, or the command that a lone yes or no is: nobody means a message by that while an agent asks."""
    word = text.strip().casefold()
    if word not in (*YES_WORDS, *NO_WORDS):
        return text
    cards = (*shown, *conversation_view(conversation).decisions)
    command = "/yes" if word in YES_WORDS else "/no"
    return command if any(card.is_about_doing for card in cards) else text


def _is_open(conversation: Conversation, card: Decision) -> bool:
    return any(one.key == card.key for one in conversation_view(conversation).decisions)


def _meant(word: str, open_cards: Sequence[Decision]) -> Choice | None:
    """Return the answer that a yes or a no is to a hand-over, or to files that make programs run."""
    cards = [card for card in open_cards if card.is_yes_or_no]
    answers = [card.choices[0] if word in YES_WORDS else card.choices[-1] for card in cards]
    if word in NO_WORDS and any(card.kind == "missed" for card in cards):
        # It may as well be a word to who has probably handed over.
        return None
    if len(answers) > 1:
        which = " or ".join(answer.typed for answer in answers)
        raise BullpenError(f"{len(answers)} decisions wait for you. Which one do you mean: {which}?")
    return next((answer for answer in answers if answer.key == YES or word in NO_WORDS), None)


def _line(conversation: Conversation, typed: Typed) -> str:
    """Return what a command or an answer does, in a line."""
    if not isinstance(typed.given, OneAnswer):
        return f"/{typed.command.name}: {typed.command.purpose}"
    given, now = typed.given, conversation_view(conversation).decisions
    card = next((one for one in now if one.turn == given.turn and given.question in (None, one.question)), None)
    if card is None:
        return CLOSED
    if given.command:
        return _about(f"No, run {few(given.command)} instead", card)
    if typed.command.name == "yes":
        words = f"Yes, {SCOPES[given.scope]}" if card.is_about_doing else given.text or "Yes"
    else:
        why = f", because: {few(given.text)}" if given.text else ", without a reason"
        words = f"{ANSWERS[typed.command.name]}{why if card.is_about_doing else ''}"
    return _about(words, card)


def _about(words: str, card: Decision) -> str:
    return f"answers {card.member}: {words}{f' ({few(card.shown)})' if card.shown else ''}"
