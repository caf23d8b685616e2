"""What people and rules answered to agents that asked, in a sentence: the same in every door."""

from bullpen.approvals import Scope
from bullpen.conversation.events import Answered
from bullpen.text.asked_words import few

VERDICTS = {"yes": "yes", "no": "no", "stop": "no and stop"}
HOW_LONG: dict[Scope, str] = {
    "once": "",
    "turn": ", also for the rest of this turn",
    "conversation": ", also for the rest of this conversation",
    "team": ", always for this team",
}


def answered_words(answered: Answered) -> str:
    """Return who answered what: "kim said yes to max: pytest -q"."""
    answer, verdict = answered.answer, VERDICTS[answered.answer.verdict]
    what = f"{answered.member}: {answered.about}" if answered.about else answered.member
    if not answered.by:
        return f"{what}: {verdict}, since {answered.because}"
    if answer.text and answer.verdict == "yes":
        return f"{answered.by} answered {what}: {few(answer.text)}"
    instead = f", but with another command: {few(answer.command)}" if answer.command else ""
    why = f" ({few(answer.reason)})" if answer.verdict != "yes" and answer.reason else ""
    return f"{answered.by} said {verdict} to {what}{instead}{HOW_LONG[answered.scope]}{why}"


def answer_key(question: str) -> str:
    """Return the key of the step that says who answered a question."""
    return f"answered-{question}"
