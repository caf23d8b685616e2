"""What Claude Code asks before it uses a tool, and what it is answered."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from bullpen.approvals import Answer
from bullpen.turn_events import ApprovalAsked

SAID_NO = "A person said no."
NOTHING_SAID = frozenset({"This command requires approval"})
"""Reasons of the CLI that say nothing."""

Input = dict[str, Any]


class Request:
    """One request of the CLI: usually one question to people, several if it has several questions, and one answer."""

    def __init__(self, request_id: str, request: Mapping[str, Any], folder: str) -> None:
        self.id = request_id
        self.call = str(request.get("tool_use_id"))
        self._given: Input = request["input"]
        self.asked = _asked(request_id, request, folder)
        self._answers: dict[str, Answer] = {}

    def answer(self, question: str, answer: Answer) -> dict[str, Any] | None:
        """Return what the CLI is answered; None if more answers are needed for that."""
        self._answers[question] = answer
        if answer.verdict == "stop":
            return {"behavior": "deny", "message": answer.reason or SAID_NO, "interrupt": True}
        if len(self._answers) < len(self.asked):
            return None
        if all(one.verdict == "no" for one in self._answers.values()):
            reasons = dict.fromkeys(one.reason for one in self._answers.values() if one.reason)
            return {"behavior": "deny", "message": "\n".join(reasons) or SAID_NO}
        # Only this once: what it suggests to allow from now on, it would write to its settings.
        return {"behavior": "allow", "updatedInput": self._input(answer)}

    @property
    def granted(self) -> dict[str, Any]:
        """What the CLI is answered if all of it may be done as it is."""
        return {"behavior": "allow", "updatedInput": self._given}

    def _input(self, answer: Answer) -> Input:
        if self.asked[0].kind == "question":
            answers = {one.why: _words(self._answers[one.id]) for one in self.asked}
            return {**self._given, "answers": {question: words for question, words in answers.items() if words}}
        if self.asked[0].can_change and answer.command:
            return {**self._given, "command": answer.command}
        return self._given


def _words(answer: Answer) -> str:
    return answer.text if answer.verdict == "yes" else answer.reason or SAID_NO


def _asked(request_id: str, request: Mapping[str, Any], folder: str) -> tuple[ApprovalAsked, ...]:
    given, blocked = request["input"], request.get("blocked_path")
    asked = ApprovalAsked(id=request_id, kind="tool", tool=request["tool_name"], folder=folder, why=_why(request))
    shown: tuple[str, ...] = ()
    match asked.tool, given:
        case "AskUserQuestion", {"questions": [*questions]} if questions and all(map(_is_question, questions)):
            return tuple(_question(asked, number, question) for number, question in enumerate(questions))
        case "Bash" | "Monitor", {"command": str(command)}:
            asked = replace(asked, kind="command", command=command, can_change=True)
            shown = ("command", "description")
        case "Write", {"file_path": str(path), "content": str(content)}:
            asked = replace(asked, kind="edit", paths=(path,), diff=_diff(path, ("", content)))
            shown = ("file_path", "content")
        case "Edit", {"file_path": str(path), "old_string": str(old), "new_string": str(new)}:
            asked = replace(asked, kind="edit", paths=(path,), diff=_diff(path, (old, new)))
            shown = ("file_path", "old_string", "new_string")
        case "MultiEdit", {"file_path": str(path), "edits": [*edits]} if all(map(_is_edit, edits)):
            pieces = [(edit["old_string"], edit["new_string"]) for edit in edits]
            asked = replace(asked, kind="edit", paths=(path,), diff=_diff(path, *pieces))
            shown = ("file_path",)
        case "NotebookEdit", {"notebook_path": str(path), "new_source": str(new)}:
            asked = replace(asked, kind="edit", paths=(path,), diff=_diff(path, ("", new)))
            shown = ("notebook_path", "new_source")
        case "WebFetch" | "WebSearch", _:
            asked = replace(asked, kind="network")
        case _, {"file_path": str(path)}:
            asked = replace(asked, paths=(path,))
    details = {name: value for name, value in given.items() if name not in shown}
    # The file that a link leads to, or the one that a command would touch.
    paths = asked.paths if not isinstance(blocked, str) else tuple(dict.fromkeys((*asked.paths, blocked)))
    # Of a file, the CLI describes only its name.
    why = asked.why.removeprefix(paths[0]).lstrip("\n") if paths else asked.why
    return (replace(asked, details=details, paths=paths, why=why),)


def _why(request: Mapping[str, Any]) -> str:
    said = (request.get("description"), request.get("decision_reason"))
    return "\n".join(dict.fromkeys(text for text in said if isinstance(text, str) and text not in NOTHING_SAID))


def _is_question(question: Any) -> bool:
    match question:
        case {"question": str(), "options": [*options]}:
            return all(isinstance(option, dict) and isinstance(option.get("label"), str) for option in options)
        case _:
            return False


def _question(asked: ApprovalAsked, number: int, question: Input) -> ApprovalAsked:
    """Return one question to people. What is asked is why; the rest has the choices' descriptions."""
    return replace(
        asked,
        id=f"{asked.id}/{number}",
        kind="question",
        why=question["question"],
        choices=tuple(option["label"] for option in question["options"]),
        details={name: value for name, value in question.items() if name != "question"},
    )


def _is_edit(edit: Any) -> bool:
    match edit:
        case {"old_string": str(), "new_string": str()}:
            return True
        case _:
            return False


def _diff(path: str, *pieces: tuple[str, str]) -> str:
    """Return every piece that goes and what comes instead. What they have in common is not looked for: it takes long.

    Every line of theirs begins with a sign of ours, so that none can be taken for another file.
    """
    name = path if path.isprintable() else repr(path)
    lines = [f"--- {name}", f"+++ {name}"]
    for old, new in pieces:
        lines.append("@@ @@")
        lines += [f"-{line}" for line in _lines(old)]
        lines += [f"+{line}" for line in _lines(new)]
    return "\n".join(lines) + "\n"


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []
