"""Questions of agents in an editor's own dialog."""

from typing import Any

from bullpen.acp_protocol import ASKED_KINDS, QUESTION
from bullpen.cli.editor.prompt_text import fenced
from bullpen.cli.editor.tool_calls import diff_block, text_block
from bullpen.conversation.events import Answered, Asked
from bullpen.text.asked_words import words_of
from bullpen.view.answers import answered_words
from bullpen.view.choices import Choice, Decision

ELSEWHERE = "It wants an answer in words. Give one in another terminal, with `bullpen inbox`."


def call_of(turn_id: str, question: str) -> str:
    """Return the id of the call that a question is shown as."""
    return f"{turn_id}/question/{question}"


def permission_request(session: str, asked: Asked, decision: Decision) -> dict[str, Any]:
    """Return what an editor is asked to show, with all that the agent would do, and nothing in it hidden."""
    question = asked.question
    content = [text_block(decision.text)]
    if question.diff and len(question.paths) == 1:
        rows = question.diff[question.diff.find("\n@@") :].split("\n")[1:]
        before, after = ([row[1:] for row in rows if row[:1] in (" ", sign)] for sign in "-+")
        content.append(diff_block(question.paths[0], before, after, question.folder))
    if decision.shown:
        content.append(text_block(fenced(decision.shown, "diff" if decision.is_diff else "")))
    if question.kind == "question" and not question.choices:
        content.append(text_block(ELSEWHERE))
    kinds = [kind for kind, asked_kind in ASKED_KINDS.items() if asked_kind == question.kind]
    call: dict[str, Any] = {
        "toolCallId": call_of(asked.turn_id, question.id),
        "title": f"{asked.member}: {words_of(question)}",
        "kind": kinds[0] if kinds else "other",
        "status": "pending",
        "content": content,
        "locations": [{"path": path} for path in question.paths],
    }
    if question.kind == "question":
        call["_meta"] = {QUESTION: True}
    if question.command:
        call["rawInput"] = {"command": question.command, "cwd": question.folder}
    elif question.details:
        call["rawInput"] = question.details
    return {"sessionId": session, "toolCall": call, "options": list(map(_option, offered(decision)))}


def offered(decision: Decision) -> list[tuple[int, Choice]]:
    """Return the answers that an editor shows, numbered. To stop an agent it has a button of its own."""
    return [(number, one) for number, one in enumerate(decision.choices) if one.action != "stop"]


def chosen(outcome: object, decision: Decision) -> Choice | None:
    """Return the answer that a person chose; None if they closed the dialog."""
    match outcome:
        case {"outcome": {"outcome": "selected", "optionId": str(option)}}:
            return next((choice for number, choice in offered(decision) if str(number) == option), None)
        case _:
            return None


def answered_update(answered: Answered) -> dict[str, Any]:
    """Return that a question is answered, here or in another door, and by whom."""
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call_of(answered.turn_id, answered.question),
        "status": "completed" if answered.answer.verdict == "yes" else "failed",
        "content": [text_block(answered_words(answered))],
    }


def _option(numbered: tuple[int, Choice]) -> dict[str, str]:
    number, choice = numbered
    kind = "reject_once"
    if choice.action == "yes":
        kind = "allow_once" if choice.given.get("scope", "once") == "once" else "allow_always"
    return {"optionId": str(number), "name": choice.label, "kind": kind}
