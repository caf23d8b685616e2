"""The Agent Client Protocol with a real program that speaks it rightly, and with one that does not."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.agents.acp_program import acp_program, heard_in

from bullpen.agents import Permission, Reply, acp_driver, process_tree, run_turn
from bullpen.agents.acp_driver import AcpDriver
from bullpen.agents.acp_words import Dialect
from bullpen.agents.dialogue import Ask, Tell
from bullpen.agents.driver import Opening
from bullpen.agents.gate import went_past
from bullpen.approvals import Answer
from bullpen.context import AssemblerInput
from bullpen.errors import AgentFailed
from bullpen.turn_events import (
    ApprovalAsked,
    ApprovalOver,
    Event,
    Failed,
    Notice,
    Started,
    TextDelta,
    TodoItem,
    TodoList,
    ToolFinished,
    ToolStarted,
)

YES, NO = Answer(verdict="yes"), Answer(verdict="no", reason="not today")
STOP = Answer(verdict="stop")


@pytest.fixture(autouse=True)
def own_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


class Talk:
    """A turn of the program."""

    def __init__(self, folder: Path, *steps: list[Any]) -> None:
        self.spec = acp_program(*steps)
        self.folder = folder
        self.events: list[Event] = []
        self.tell: Tell = lambda _: False

    async def run(self, ask: Ask, permissions: Permission = "ask", **options: Any) -> Reply:
        given = self.spec.assembler().assemble(
            AssemblerInput(current_message="hello", system_instruction="You are Max.")
        )

        def on_tell(tell: Tell) -> None:
            self.tell = tell

        return await run_turn(
            self.spec,
            given,
            emit=self.events.append,
            cwd=self.folder,
            permissions=permissions,
            ask=ask,
            on_tell=on_tell,
            **options,
        )

    def failed(self, ask: Ask, **options: Any) -> Failed:
        with pytest.raises(AgentFailed) as raised:
            asyncio.run(self.run(ask, **options))
        return raised.value.event

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    async def until_said(self, words: str) -> None:
        while words not in "".join(event.text for event in self.of(TextDelta)):
            await asyncio.sleep(0.002)

    @property
    def heard(self) -> list[dict[str, Any]]:
        return heard_in(self.folder)

    @property
    def outcomes(self) -> list[tuple[Any, str]]:
        """What it was answered, by the number of its question."""
        replies = [message for message in self.heard if "outcome" in (message.get("result") or {})]
        outcomes = [(message["id"], message["result"]["outcome"]) for message in replies]
        return [(number, outcome.get("optionId", outcome["outcome"])) for number, outcome in outcomes]

    @property
    def prompts(self) -> list[str]:
        asked = [message for message in self.heard if message.get("method") == "session/prompt"]
        return [message["params"]["prompt"][0]["text"] for message in asked]


def always(answer: Answer) -> Ask:
    async def ask(_: ApprovalAsked) -> Answer:
        return answer

    return ask


async def never(_: ApprovalAsked) -> Answer:
    await asyncio.Event().wait()
    raise AssertionError


ASKED_ONCE: tuple[list[Any], ...] = (["ask", 7, "make it"], ["wait", 7], ["allowed", 7, "made"])


def test_the_handshake_and_the_role_in_the_first_message(tmp_path: Path) -> None:
    talk = Talk(tmp_path, ["say", "fine"], ["end", "end_turn"])

    reply = asyncio.run(talk.run(never))

    assert reply.text == "fine"
    assert talk.events[0] == Started(session_id="s1", cli_version="1.2.3")
    methods = [message["method"] for message in talk.heard]
    assert methods == ["initialize", "session/new", "session/set_mode", "session/prompt"]
    capabilities = talk.heard[0]["params"]["clientCapabilities"]
    assert capabilities == {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
    assert talk.heard[1]["params"] == {"cwd": str(tmp_path), "mcpServers": []}
    assert talk.heard[2]["params"]["modeId"] == "default"
    assert "You are Max." in talk.prompts[0]
    assert not process_tree.running


def test_a_yes_holds_once_and_never_always(tmp_path: Path) -> None:
    again = (["ask", 8, "make it"], ["wait", 8])
    talk = Talk(tmp_path, *ASKED_ONCE, *again, ["say", "fine"], ["end", "end_turn"])

    asyncio.run(talk.run(always(YES)))

    assert talk.outcomes == [(7, "y"), (8, "y")]
    assert [asked.command for asked in talk.of(ApprovalAsked)] == ["make it", "make it"]
    assert (tmp_path / "made").exists()


def test_a_changed_command_is_never_the_old_one(tmp_path: Path) -> None:
    talk = Talk(tmp_path, *ASKED_ONCE, ["end", "end_turn"], ["prompt"], ["say", "fine"], ["end", "end_turn"])

    asyncio.run(talk.run(always(Answer(verdict="yes", command="make other"))))

    assert talk.outcomes == [(7, "n")]
    assert "Run this instead: make other" in talk.prompts[1]
    assert not (tmp_path / "made").exists()


def test_a_no_without_a_reason_is_told_only_if_nothing_was_said(tmp_path: Path) -> None:
    talk = Talk(tmp_path, *ASKED_ONCE, ["say", "then not"], ["end", "end_turn"])

    reply = asyncio.run(talk.run(always(Answer(verdict="no"))))

    assert reply.text == "then not"
    assert len(talk.prompts) == 1


def test_a_turn_that_a_refusal_has_cancelled_goes_on(tmp_path: Path) -> None:
    talk = Talk(tmp_path, *ASKED_ONCE, ["end", "cancelled"], ["prompt"], ["say", "fine"], ["end", "end_turn"])

    reply = asyncio.run(talk.run(always(NO)))

    assert reply.text == "fine"
    assert "not today" in talk.prompts[1]


def test_what_an_agent_answers_after_a_no_is_its_answer_and_it_is_not_prompted_again(tmp_path: Path) -> None:
    talk = Talk(tmp_path, *ASKED_ONCE, ["say", "IMPORTANT FINDINGS [NEXT: ben]"], ["end", "end_turn"])

    reply = asyncio.run(talk.run(always(NO)))

    assert reply.text == "IMPORTANT FINDINGS [NEXT: ben]"
    assert len(talk.prompts) == 1


def test_all_that_it_says_around_the_prompt_after_a_no_is_kept(tmp_path: Path) -> None:
    before, after = ["say", "I look. [NEXT: ann]"], ["say", "Then not. [NEXT: ben]"]
    talk = Talk(tmp_path, before, *ASKED_ONCE, ["end", "end_turn"], ["prompt"], after, ["end", "end_turn"])

    reply = asyncio.run(talk.run(always(NO)))

    assert reply.text == "I look. [NEXT: ann]\n\nThen not. [NEXT: ben]"
    assert len(talk.prompts) == 2


def test_who_asks_for_ever_is_told_once(tmp_path: Path) -> None:
    rounds = [
        step
        for number in range(30)
        for step in (["ask", number, "x"], ["wait", number], ["end", "end_turn"], ["prompt"])
    ]
    talk = Talk(tmp_path, *rounds)

    asyncio.run(talk.run(always(NO)))

    assert len(talk.prompts) == 2


def test_a_stop_cancels_and_is_said(tmp_path: Path) -> None:
    talk = Talk(tmp_path, *ASKED_ONCE, ["ask", 8, "more"], ["wait", 8], ["end", "cancelled"])

    failed = talk.failed(always(STOP))

    assert failed.kind == "permission_refused"
    assert talk.outcomes == [(7, "n"), (8, "cancelled")]
    assert "session/cancel" in [message.get("method") for message in talk.heard]
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("permissions", "command", "edit", "outside"),
    [("read-only", "n", "n", "n"), ("edit", "n", "y", "n"), ("full", "y", "y", "y")],
)
def test_other_permissions_answer_by_themselves(
    tmp_path: Path, permissions: Permission, command: str, edit: str, outside: str
) -> None:
    talk = Talk(
        tmp_path,
        *(["ask", 1, "make it"], ["edit", 2, "a.txt"], ["edit", 3, "/etc/hosts"]),
        *(["wait", 3], ["end", "end_turn"], ["prompt"], ["say", "fine"], ["end", "end_turn"]),
    )
    if permissions == "full":
        talk = Talk(
            tmp_path, ["ask", 1, "x"], ["edit", 2, "a"], ["edit", 3, "/etc/hosts"], ["wait", 3], ["end", "end_turn"]
        )

    asyncio.run(talk.run(never, permissions))

    assert talk.outcomes == [(1, command), (2, edit), (3, outside)]
    assert talk.of(ApprovalAsked) == []
    assert permissions == "full" or f'permissions = "{permissions}"' in talk.prompts[1]


def asking(*kinds_and_names: tuple[str, str], **call: Any) -> list[Any]:
    options = [{"optionId": name.lower(), "kind": kind, "name": name} for kind, name in kinds_and_names]
    params = {"sessionId": "s1", "toolCall": {"toolCallId": "c7", "title": "Which?", **call}, "options": options}
    return ["raw", {"jsonrpc": "2.0", "id": 7, "method": "session/request_permission", "params": params}]


SQLITE, POSTGRES, NEITHER = ("allow_once", "SQLite"), ("allow_once", "Postgres"), ("reject_once", "Neither")


@pytest.mark.parametrize("permissions", ["ask", "full"])
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (Answer(verdict="yes", text="Postgres"), "postgres"),
        (Answer(verdict="yes", text="MySQL"), "neither"),
        (Answer(verdict="no"), "neither"),
    ],
)
def test_only_people_choose_among_several_answers(
    tmp_path: Path, permissions: Permission, answer: Answer, outcome: str
) -> None:
    ends = (["wait", 7], ["say", "fine"], ["end", "end_turn"])
    more = (["prompt"], ["say", "good"], ["end", "end_turn"]) if answer.text == "MySQL" else ()
    talk = Talk(tmp_path, asking(SQLITE, POSTGRES, NEITHER, kind="other"), *ends, *more)

    asyncio.run(talk.run(always(answer), permissions))

    [asked] = talk.of(ApprovalAsked)
    assert (asked.kind, asked.choices, asked.why) == ("question", ("SQLite", "Postgres"), "Which?")
    assert talk.outcomes == [(7, outcome)]
    assert talk.prompts[1:] == (["(bullpen: 'Which?' is answered:) MySQL"] if more else [])


def test_an_answer_that_another_team_offers_is_never_given_unasked(tmp_path: Path) -> None:
    asked = asking(SQLITE, NEITHER, kind="other", _meta={"bullpen/isQuestion": True})
    talk = Talk(tmp_path, asked, ["wait", 7], ["say", "fine"], ["end", "end_turn"])

    asyncio.run(talk.run(always(Answer(verdict="no")), "full"))

    assert talk.outcomes == [(7, "neither")]


@pytest.mark.parametrize("named", [{"kind": "edit"}, {"kind": "other", "_meta": {"toolName": "deploy"}}])
def test_several_ways_to_allow_something_are_no_question(tmp_path: Path, named: dict[str, Any]) -> None:
    talk = Talk(tmp_path, asking(SQLITE, POSTGRES, NEITHER, **named), ["wait", 7], ["end", "end_turn"])

    asyncio.run(talk.run(never, "full"))

    assert talk.outcomes == [(7, "sqlite")]


@pytest.mark.parametrize(
    "path",
    [
        "/etc/hosts",
        "../other.txt",
        ".git/hooks/pre-commit",
        "sub/.qwen/settings.json",
        ".env",
        "opencode.json",
        "link/x.txt",
        ".",
    ],
)
def test_only_usual_files_of_its_folder_are_edited_unasked(tmp_path: Path, path: str) -> None:
    (tmp_path / "link").symlink_to("/etc")
    talk = Talk(tmp_path, ["edit", 1, "src/a.py"], ["edit", 2, path], ["wait", 2], ["say", "fine"], ["end", "end_turn"])

    asyncio.run(talk.run(always(YES)))

    assert [asked.paths for asked in talk.of(ApprovalAsked)] == [(path,)]
    assert talk.outcomes == [(1, "y"), (2, "y")]


def test_cancelling_answers_its_questions_and_leaves_no_process(tmp_path: Path) -> None:
    talk = Talk(tmp_path, ["ask", 1, "x"], ["ask", 2, "y"], ["stay"])

    async def cancelled() -> None:
        running = asyncio.ensure_future(talk.run(never))
        while len(talk.of(ApprovalAsked)) < 2:
            await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancelled())

    assert sorted(over.is_answered for over in talk.of(ApprovalOver)) == [False, False]
    assert not process_tree.running


def test_words_are_not_taken_where_the_agent_does_not_ask_for_them(tmp_path: Path) -> None:
    talk = Talk(tmp_path, *ASKED_ONCE, ["say", "fine"], ["end", "end_turn"])
    taken: list[bool] = []

    async def ask(_: ApprovalAsked) -> Answer:
        taken.append(talk.tell("hurry"))
        return YES

    asyncio.run(talk.run(ask))

    assert taken == [False]


def test_the_same_question_twice_is_asked_once_and_its_number_may_come_again(tmp_path: Path) -> None:
    twice = ["ask", 1, "x"], ["ask", 1, "x"], ["say", "twice"]
    talk = Talk(tmp_path, *twice, ["wait", 1], ["ask", 1, "y"], ["say", "again"], ["stay"])
    answered: list[str] = []

    async def ask(asked: ApprovalAsked) -> Answer:
        answered.append(asked.id)
        await talk.until_said("twice")
        return NO if len(answered) == 1 else await never(asked)

    async def stopped() -> None:
        running = asyncio.ensure_future(talk.run(ask))
        await talk.until_said("twiceagain")
        while len(answered) < 2:
            await asyncio.sleep(0.002)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(stopped())

    assert answered == ["q1", "q2"]


def test_what_it_may_not_ask_us_is_refused_at_once(tmp_path: Path) -> None:
    requests = [
        {"jsonrpc": "2.0", "id": number, "method": method, "params": {"sessionId": "s1", "path": "/etc/passwd"}}
        for number, method in enumerate(["fs/read_text_file", "fs/write_text_file", "terminal/create", "x/y"])
    ]
    talk = Talk(tmp_path, *(["raw", one] for one in requests), ["wait", 3], ["say", "fine"], ["end", "end_turn"])

    asyncio.run(talk.run(never))

    errors = [(message["id"], message["error"]["code"]) for message in talk.heard if "error" in message]
    assert errors == [(number, -32601) for number in range(4)]


def test_a_flood_of_requests_ends_the_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acp_driver, "MOST_REPLIES", 100)
    talk = Talk(tmp_path, *(["raw", {"id": number, "method": "x"}] for number in range(1000)), ["stay"])

    failed = talk.failed(never)

    assert failed.kind == "protocol_broken"
    assert "more than 100" in failed.message


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("refusal", "crashed"),
        ("max_tokens", "prompt_too_long"),
        ("max_turn_requests", "turn_limit"),
        ("cancelled", "crashed"),
        ("bored", "protocol_broken"),
    ],
)
def test_other_ends_are_failures(tmp_path: Path, reason: str, kind: str) -> None:
    assert Talk(tmp_path, ["end", reason]).failed(never).kind == kind


def test_an_answer_that_is_cut_off_is_an_answer(tmp_path: Path) -> None:
    talk = Talk(tmp_path, ["say", "half"], ["end", "max_tokens"])

    assert asyncio.run(talk.run(never)).text == "half"
    assert "cut off" in talk.of(Notice)[0].text


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [(-32000, "Please sign in", "not_signed_in"), (429, "slow down", "quota"), (-32603, "odd", "crashed")],
)
def test_an_error_is_a_failure(tmp_path: Path, code: int, message: str, kind: str) -> None:
    failed = Talk(tmp_path, ["error", code, message]).failed(never)

    assert failed.kind == kind
    assert message in failed.message


def told(what: str, **more: Any) -> list[Any]:
    update = {"sessionUpdate": what, **more}
    return ["raw", {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s1", "update": update}}]


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ({"title": "Edit a file", "kind": "edit", "content": [{"type": "diff", "path": "/x", "newText": "1"}]}, "Edit"),
        ({"title": "Move it", "kind": "move", "locations": [{"path": "a"}]}, "Move it"),
        ({"title": "x", "kind": "execute", "rawInput": {"command": "touch a; ls"}}, "touch a; ls"),
        ({"title": "x", "kind": "execute", "rawInput": {"command": "ls", "env": {"PATH": "."}}}, "ls"),
    ],
)
def test_what_it_does_without_a_question_ends_its_turn(call: dict[str, Any], what: str, tmp_path: Path) -> None:
    talk = Talk(
        tmp_path,
        told("tool_call", toolCallId="t", status="in_progress", **call),
        told("tool_call_update", toolCallId="t", status="completed"),
        ["say", "fine"],
        ["end", "end_turn"],
    )

    failed = talk.failed(never)

    assert failed.kind == "permission_refused"
    assert failed.message.startswith(f"It did this without a yes, so its turn was ended: {what}")


@pytest.mark.parametrize("answer", [None, NO])
def test_what_it_does_without_a_yes_ends_its_turn(answer: Answer | None, tmp_path: Path) -> None:
    call = {"toolCallId": "t", "kind": "execute", "title": "touch a", "rawInput": {"command": "touch a"}}
    driver = AcpDriver(
        Opening(prompt="x", folder=str(tmp_path), permissions="ask"), Dialect(modes=(), needs_mode=False)
    )
    options = [{"optionId": "y", "kind": "allow_once", "name": "Yes"}]
    update = {"sessionId": "s", "update": {**call, "sessionUpdate": "tool_call_update", "status": "completed"}}
    events: list[Event] = []
    for record in (
        {"id": 1, "result": {"protocolVersion": 1}},
        {"id": 2, "result": {"sessionId": "s"}},
        {"method": "session/request_permission", "id": 7, "params": {"toolCall": call, "options": options}},
        {"method": "session/update", "params": update},
    ):
        events += driver.parse(record)
        if answer is not None:
            driver.answer("q1", answer)

    assert events[-1] == went_past("touch a")


def test_what_needs_no_question_and_what_failed_may_go_unasked(tmp_path: Path) -> None:
    made = {"type": "diff", "path": str(tmp_path / "a.py"), "newText": "1"}
    calls: list[dict[str, Any]] = [
        {"title": "x", "kind": "execute", "rawInput": {"command": "ls"}},
        {"title": "x", "kind": "edit", "content": [made]},
        {"title": "x", "kind": "read", "rawInput": {"path": "/etc/passwd"}},
    ]
    steps = [told("tool_call", toolCallId=str(number), status="completed", **call) for number, call in enumerate(calls)]
    failed = told("tool_call", toolCallId="f", status="failed", kind="execute", rawInput={"command": "touch a"})
    talk = Talk(tmp_path, *steps, failed, ["say", "fine"], ["end", "end_turn"])

    assert asyncio.run(talk.run(never)).text == "fine"


def test_plans_tools_and_modes(tmp_path: Path) -> None:
    entries = [{"content": "a", "status": "completed"}, {"content": "b", "status": "pending"}]
    text = [{"type": "content", "content": {"type": "text", "text": "out"}}]
    diff = [{"type": "diff", "path": "/x/a.py", "oldText": "1\n2\n3\n", "newText": "1\n9\n3\n"}]
    talk = Talk(
        tmp_path,
        told("plan", entries=entries),
        told("tool_call", toolCallId="t1", title="grep", kind="search", status="pending", rawInput={"pattern": "x"}),
        told("tool_call_update", toolCallId="t1", status="completed", content=text),
        told("tool_call", toolCallId="t2", title="Edit a file", kind="edit", status="in_progress", content=diff),
        told("tool_call_update", toolCallId="t2", status="completed"),
        told("current_mode_update", currentModeId="yolo"),
        told("available_commands_update", availableCommands=[]),
        told("something_new"),
        ["raw", {"jsonrpc": "2.0", "method": "_vendor/notice", "params": {}}],
        ["raw", {"jsonrpc": "2.0", "id": 99, "result": {}}],
        ["say", "fine"],
        ["end", "end_turn"],
    )

    assert asyncio.run(talk.run(never, permissions="full")).text == "fine"

    assert talk.of(TodoList) == [TodoList((TodoItem("a", done=True), TodoItem("b", done=False)))]
    assert talk.of(ToolStarted)[0] == ToolStarted(id="t1", name="grep", input={"pattern": "x"})
    assert talk.of(ToolStarted)[1] == ToolStarted(id="t2", name="edit", input={"path": "/x/a.py"})
    assert talk.of(ToolFinished) == [
        ToolFinished(id="t1", output="out"),
        ToolFinished(id="t2", changed_files=("/x/a.py",)),
    ]
    assert [notice.kind for notice in talk.of(Notice)] == ["warning", "unknown", "warning"]
    modes = [message["params"]["modeId"] for message in talk.heard if message.get("method") == "session/set_mode"]
    assert modes in (["default"], ["default", "default"])
