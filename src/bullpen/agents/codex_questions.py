"""What Codex's app-server asks, as questions to people, and their answers as its own; also what it may do unasked."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from bullpen.agents.codex_items import changes_in, paths_of
from bullpen.agents.gate import is_free
from bullpen.approvals import Answer
from bullpen.turn_events import LEAVES_SANDBOX, OR, ApprovalAsked

DECISIONS = {"yes": "accept", "no": "decline", "stop": "cancel"}
"""Never acceptForSession, and no amendments: those hold for longer, and some are written to disk."""

RequestId = int | str
Item = dict[str, Any]


class Question(Struct, kw_only=True):
    """A request of the app-server that is not answered yet. A form has several questions, and one answer to all."""

    request: RequestId
    asked: list[ApprovalAsked]
    thread: str
    turn: str
    item: str = ""
    is_tool: bool = False
    """Whether it is asked in the way of MCP servers."""
    fields: dict[str, str] = {}
    """The names of a form's questions in the form."""
    answers: dict[str, list[str]] = {}
    """What was answered to them so far."""

    def answer(self, answer: Answer, question: str) -> dict[str, Any] | None:
        """Return what to reply to the app-server; None, if there are more questions in the form."""
        if self.is_tool:
            return {"action": DECISIONS[answer.verdict], "content": None}
        if not self.fields:
            return {"decision": DECISIONS[answer.verdict]}
        said = answer.text if answer.verdict == "yes" else answer.reason
        self.answers[self.fields[question]] = [said] if said else []
        is_complete = answer.verdict == "stop" or len(self.answers) == len(self.fields)
        return {"answers": {name: {"answers": given} for name, given in self.answers.items()}} if is_complete else None


def question_from(
    method: str, request: RequestId, params: dict[str, Any], items: Mapping[str, Item], folder: str
) -> Question | None:
    """Return the question that a request asks; `items` are those that have begun. None: it is not for people."""
    number, fields = str(request), {}
    match method, params:
        case "item/commandExecution/requestApproval", _:
            asked = [_command(number, params)]
        case "item/fileChange/requestApproval", _:
            asked = [edit_asked(number, params, _changes(params, items), folder)]
        case "mcpServer/elicitation/request", {"mode": "form", "serverName": str(server)} if _needs_no_input(params):
            asked = [_tool(number, server, params, items, folder)]
        case "item/tool/requestUserInput", {"questions": [_, *_] as questions} if _are_named(questions):
            asked = [_choice(f"{number}.{place}", question, folder) for place, question in enumerate(questions)]
            fields = {one.id: str(question["id"]) for one, question in zip(asked, questions, strict=True)}
        case _:
            return None
    return Question(
        request=request,
        asked=asked,
        thread=str(params.get("threadId") or ""),
        turn=str(params.get("turnId") or ""),
        item=str(params.get("itemId")),
        is_tool=method == "mcpServer/elicitation/request",
        fields=fields,
        answers={},
    )


def is_free_request(asked: ApprovalAsked, params: dict[str, Any], folder: str) -> bool:
    """Return whether it may do without a question what it asks for.

    Codex says why if it asks for more than that, and after its sandbox has refused something.
    """
    is_plain = params.get("reason") is None and params.get("kind", "command") == "command"
    # Its paths are whole: from where another one would lead, only Codex knows.
    is_clear = params.get("grantRoot") is None and all(path.startswith("/") for path in asked.paths)
    return is_plain and is_clear and is_free(asked, folder)


def _changes(params: dict[str, Any], items: Mapping[str, Item]) -> list[dict[str, Any]]:
    """Return the changes that a request is about: its item has them."""
    return changes_in(items.get(str(params.get("itemId"))))


def _command(question: str, params: dict[str, Any]) -> ApprovalAsked:
    network = params.get("networkApprovalContext")
    # With a reason it asks for more than to run the command: without its sandbox, or again after that has failed.
    more = {LEAVES_SANDBOX: params.get("additionalPermissions") or True}
    has_more = params.get("reason") is not None or params.get("additionalPermissions") is not None
    return ApprovalAsked(
        id=question,
        kind="network" if isinstance(network, dict) else "command",
        tool=str(network.get("host")) if isinstance(network, dict) else "shell",
        command=str(params.get("command") or ""),
        details=network if isinstance(network, dict) else more if has_more else {},
        folder=str(params.get("cwd") or ""),
        why=str(params.get("reason") or ""),
    )


def edit_asked(question: str, params: dict[str, Any], changes: list[dict[str, Any]], folder: str) -> ApprovalAsked:
    """Return the question whether files may be changed."""
    root = params.get("grantRoot")
    return ApprovalAsked(
        id=question,
        kind="edit",
        tool="file_change",
        diff="\n".join(_diff(change) for change in changes),
        paths=tuple(path for change in changes for path in paths_of(change)),
        details={"grantRoot": root} if root is not None else {},
        folder=folder,
        why=str(params.get("reason") or ""),
    )


def _diff(change: dict[str, Any]) -> str:
    """Return a change as a diff. Codex gives the whole text of a file that is added or deleted."""
    kind, text = change.get("kind"), str(change.get("diff") or "")
    path, *moved = paths_of(change) or [""]
    match kind:
        case {"type": "add"}:
            return "\n".join([f"--- /dev/null\n+++ {path}", *(f"+{line}" for line in text.splitlines())])
        case {"type": "delete"}:
            return "\n".join([f"--- {path}\n+++ /dev/null", *(f"-{line}" for line in text.splitlines())])
        case _:
            return f"--- {path}\n+++ {(moved or [path])[0]}\n{text}"


def _are_named(questions: list[Any]) -> bool:
    return all(isinstance(question, dict) and "id" in question for question in questions)


def _needs_no_input(params: dict[str, Any]) -> bool:
    schema = params.get("requestedSchema")
    return isinstance(schema, dict) and not schema.get("properties")


def _tool(question: str, server: str, params: dict[str, Any], items: Mapping[str, Item], folder: str) -> ApprovalAsked:
    about = params.get("_meta")
    given = about.get("tool_params") if isinstance(about, dict) else None
    # The request does not name the tool but for people. Of several that are called alike, it may be any.
    names = {
        f"{server}.{item.get('tool')}"
        for item in items.values()
        if item.get("server") == server and item.get("arguments") == given
    }
    return ApprovalAsked(
        id=question,
        kind="tool",
        tool=OR.join(sorted(names)) or server,
        details=given if isinstance(given, dict) else {},
        folder=folder,
        why=str(params.get("message") or ""),
    )


def _choice(question: str, asked: dict[str, Any], folder: str) -> ApprovalAsked:
    options = asked.get("options")
    options = options if isinstance(options, list) else []
    return ApprovalAsked(
        id=question,
        kind="question",
        tool="request_user_input",
        folder=folder,
        why=str(asked.get("question") or ""),
        choices=tuple(str(option["label"]) for option in options if isinstance(option, dict) and "label" in option),
    )
