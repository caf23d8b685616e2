"""`bullpen acp`: a team as one agent in an editor."""

import asyncio
import signal
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from tests.cli.editor.client import Editor
from tests.cli.editor.conftest import Script

from bullpen.private_door import Decided, decide
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.site import site
from bullpen.view.commands import COMMANDS
from bullpen.view.inbox import inbox, owner_token

Start = Callable[..., Editor]
Write = Callable[..., Path]
PATIENCE_SECONDS = 60.0


def stored(home: Path) -> list[str]:
    """Return what was said, in the only conversation."""
    with SqliteStore(home / "data" / "conversations.db") as store:
        [conversation] = store.conversations()
        return [one.message.content for one in store.messages(conversation.id)]


def until(fits: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not fits():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_members_speak_with_their_names_and_one_hands_over_to_the_other(
    editor: Start, write_team: Write, tmp_path: Path, home: Path
) -> None:
    write_team(max="Built. [NEXT: sarah]", sarah="Looks good.")
    one = editor()
    session = one.opened(tmp_path)

    assert one.prompt(session, "Go.") == "**max:**\n\nBuilt. [NEXT: sarah]\n\n**sarah:**\n\nLooks good."
    assert one.leave() == 0
    assert stored(home) == ["Go.", "Built. [NEXT: sarah]", "Looks good."]


def test_turns_that_run_at_once_are_written_one_after_the_other(
    editor: Start, write_team: Write, tmp_path: Path
) -> None:
    def half(name: str, other: str) -> Script:
        done = {"write_file": {"path": name, "text": ""}}
        return [{"say": "one two "}, done, {"wait_for": other}, {"say": "three four"}]

    write_team(max=half("max", "sarah"), sarah=half("sarah", "max"))
    one = editor()
    session = one.opened(tmp_path)

    written = one.prompt(session, "[NEXT: max & sarah] Go.")

    said = ["**max:**\n\none two three four", "**sarah:**\n\none two three four"]
    # They have changed files, too.
    assert written.partition("\n\n> ±")[0] in ("\n\n".join(said), "\n\n".join(reversed(said)))


def test_a_mode_says_who_is_asked_unless_the_message_does(
    editor: Start, write_team: Write, tmp_path: Path, home: Path
) -> None:
    write_team(max="I am max.", sarah="I am sarah.")
    one = editor()
    session = one.opened(tmp_path)

    one.ask("session/set_mode", sessionId=session, modeId="@sarah")
    assert one.prompt(session, "Who?") == "**sarah:**\n\nI am sarah."
    assert one.prompt(session, "@max who?") == "**max:**\n\nI am max."
    assert one.prompt(session, "Who?") == "**sarah:**\n\nI am sarah."
    one.ask("session/set_mode", sessionId=session, modeId="default")
    assert one.prompt(session, "Who?") == "**sarah:**\n\nI am sarah."
    one.ask("session/set_mode", sessionId=session, modeId="@all")
    both = ["**max:**\n\nI am max.", "**sarah:**\n\nI am sarah."]
    assert one.prompt(session, "Who?") in ("\n\n".join(both), "\n\n".join(reversed(both)))
    code, why = one.refusal("session/set_mode", sessionId=session, modeId="@eve")
    assert (code, why) == (-32603, "There is no mode '@eve'. There are: default, @max, @sarah, @all.")
    one.leave()
    assert "Who?\n\n[NEXT: sarah]" in stored(home)


def test_every_command_of_the_table_is_offered_and_works(editor: Start, write_team: Write, tmp_path: Path) -> None:
    write_team(max="Hello.")
    one = editor()
    session = one.opened(tmp_path)
    one.prompt(session, "Hi.")

    [offered] = one.updates("available_commands_update")
    assert [command["name"] for command in offered["availableCommands"]] == [n for n in COMMANDS if n != "quit"]
    assert "max: python (leads)" in one.prompt(session, "/who")
    assert "No turn is running or waiting." in one.prompt(session, "/queue")
    assert one.prompt(session, "/note By Friday.") == ""
    assert "#3" in one.prompt(session, "/search Friday")
    assert "/retry" in one.prompt(session, "/help")
    assert one.prompt(session, "/rename The login") == "> This conversation is called: The login"
    assert {"sessionUpdate": "session_info_update", "title": "The login"} in one.updates("session_info_update")
    assert "There is no command /nonsense" in one.prompt(session, "/nonsense")
    assert one.prompt(session, "/quit") == "> Close this thread in your editor. Everything is stored."


def test_tools_plans_thoughts_and_what_was_used_are_shown(editor: Start, playing: Write, tmp_path: Path) -> None:
    edit = {"file_path": "a.py", "old_string": "x = 1\n", "new_string": "x = 2\n"}
    playing(
        {"think": "Hm."},
        {"todo": [{"text": "build", "completed": True}, {"text": "test", "completed": False}]},
        {"tool": {"name": "Edit", "input": edit, "output": "ok"}},
        {"tool": {"name": "Bash", "input": {"command": "pytest"}, "output": "1 failed", "failed": True}},
        {"say": "Done."},
        {"usage": {"input": 100, "output": 20, "cached": 3}, "cost": 0.01},
    )
    one = editor()
    session = one.opened(tmp_path)
    answer = one.answer_to(one.begin_prompt(session, "Go."))["result"]

    assert answer["stopReason"] == "end_turn"
    assert answer["usage"]["outputTokens"] == 20
    assert answer["usage"]["totalTokens"] == answer["usage"]["inputTokens"] + 20
    assert [update["content"]["text"] for update in one.updates("agent_thought_chunk")] == ["Hm."]
    first, *_, last = one.updates("plan")
    assert [(entry["content"], entry["status"]) for entry in first["entries"]] == [
        ("max: build", "completed"),
        ("max: test", "pending"),
    ]
    assert last["entries"] == []
    edited, ran = one.updates("tool_call")
    assert (edited["kind"], edited["title"]) == ("edit", "max: Edit a.py +1 −1")
    [diff] = edited["content"]
    path = str(tmp_path / "a.py")
    assert diff == {"type": "diff", "path": path, "oldText": "x = 1\n", "newText": "x = 2\n"}
    assert edited["locations"] == [{"path": path}]
    assert (ran["kind"], ran["title"], ran["rawInput"]) == ("execute", "max: Bash pytest", {"command": "pytest"})
    statuses = {update["toolCallId"]: update["status"] for update in one.updates("tool_call_update")}
    assert statuses == {edited["toolCallId"]: "completed", ran["toolCallId"]: "failed"}


def test_a_cli_that_names_only_the_files_is_shown_with_what_it_changed_also_when_it_is_loaded(
    editor: Start, playing: Write, tmp_path: Path
) -> None:
    path = tmp_path / "a.py"
    path.write_text("x = 1\n")
    edit = {"name": "Edit", "input": {"file_path": str(path)}, "runs": f"echo 'x = 2' > {path}"}
    ran = {"name": "Bash", "input": {"command": "pytest"}, "output": "2 passed"}
    playing({"tool": edit}, {"tool": ran}, {"say": "Done."}, cli="codex", may="edit")
    first = editor()
    session = first.opened(tmp_path)
    first.prompt(session, "Go.")
    diff = {"type": "diff", "path": str(path), "oldText": "x = 1\n", "newText": "x = 2\n"}
    assert [diff] in [update.get("content") for update in first.updates("tool_call_update")]
    first.leave()

    again = editor()
    again.ask("initialize", protocolVersion=1)
    again.ask("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])

    assert [call["title"] for call in again.updates("tool_call")] == [f"max: file_change {path}", "max: shell pytest"]
    edited, tested, changed = again.updates("tool_call_update")
    assert (edited["status"], tested["status"]) == ("completed", "completed")
    assert (changed["toolCallId"], changed["content"]) == (edited["toolCallId"], [diff])
    assert again.written() == "**max:**\n\nDone."


@pytest.mark.parametrize(
    ("name", "said"),
    [("Yes", "allowed"), ("Yes, for exactly this from now on", "allowed"), ("No, and say why", "refused")],
)
def test_a_question_is_answered_in_the_editors_own_dialog(
    editor: Start, playing: Write, tmp_path: Path, name: str, said: str
) -> None:
    playing({"ask": "touch 'a b'"}, {"ask": "touch 'a b'"})
    one = editor()
    session = one.opened(tmp_path)
    number = one.begin_prompt(session, "Go.")
    question = one.question()
    call = question["params"]["toolCall"]

    assert call["kind"] == "execute"
    assert call["title"] == "max: touch 'a b'"
    assert call["rawInput"]["command"] == "touch 'a b'"
    assert "touch 'a b'" in call["content"][1]["content"]["text"]
    kinds = {option["name"]: option["kind"] for option in question["params"]["options"]}
    assert kinds == {
        "Yes": "allow_once",
        "Yes, for exactly this from now on": "allow_always",
        "No, and say why": "reject_once",
    }
    one.choose(question, name)
    if name != "Yes, for exactly this from now on":
        one.choose(one.question(), name)
    one.answer_to(number)
    ended = [one for one in one.updates("tool_call_update") if one["toolCallId"] == call["toolCallId"]]
    assert [update["status"] for update in ended] == ["completed" if said == "allowed" else "failed"]
    assert one.leave() == 0


def test_a_question_can_be_answered_in_another_door_and_the_first_answer_counts(
    editor: Start,
    playing: Write,
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
) -> None:
    monkeypatch.setenv("BULLPEN_HOME", environment["BULLPEN_HOME"])
    monkeypatch.setenv("XDG_STATE_HOME", environment["XDG_STATE_HOME"])
    playing({"ask": "touch a"}, {"wait_for": str(tmp_path / "go")})
    one = editor()
    session = one.opened(tmp_path)
    number = one.begin_prompt(session, "Go.")
    question = one.question()
    with SqliteStore(home / "data" / "conversations.db") as store:
        until(lambda: inbox(store))
        [item] = inbox(store)
        token = owner_token(store, session)
    assert token is not None

    no = next(choice for choice in item.decision.choices if choice.action == "no")
    decide(token, Decided(action=no.action, given=dict(no.given), by="kim"))
    # While its turn continues, the editor is told to close the dialog.
    one.until(lambda message: message.get("method") == "$/cancel_request")
    one.choose(question, "Yes")
    (tmp_path / "go").touch()
    one.answer_to(number)

    back = [message["params"] for message in one.heard if message.get("method") == "$/cancel_request"]
    assert back == [{"requestId": question["id"]}]
    call = question["params"]["toolCall"]["toolCallId"]
    [update] = [update for update in one.updates("tool_call_update") if update["toolCallId"] == call]
    assert update["status"] == "failed"
    assert "kim said no to max: touch a" in update["content"][0]["content"]["text"]


def test_a_dialog_that_is_closed_leaves_the_question_open(editor: Start, playing: Write, tmp_path: Path) -> None:
    playing({"ask": "touch a"})
    one = editor()
    session = one.opened(tmp_path)
    number = one.begin_prompt(session, "Go.")
    question = one.question()
    one.send(id=question["id"], result={"outcome": {"outcome": "cancelled"}})
    one.until(lambda message: "The question is still open" in str(message))

    one.answer_to(one.begin_prompt(session, "/yes"))
    assert one.answer_to(number)["result"]["stopReason"] == "end_turn"


def test_cancelling_stops_the_agent_and_is_said(editor: Start, write_team: Write, tmp_path: Path) -> None:
    write_team(max=[{"say": "I begin."}, {"hang": True}])
    one = editor()
    session = one.opened(tmp_path)
    number = one.begin_prompt(session, "Go.")
    one.until(lambda message: "I begin." in str(message))
    one.send(method="session/cancel", params={"sessionId": session})

    assert one.answer_to(number)["result"]["stopReason"] == "cancelled"
    assert "turn 1 was cancelled. `/retry 1` runs it again." in one.written()
    assert "`/skip 1`" not in one.written()


def test_cancelling_while_an_agent_asks_ends_both(editor: Start, playing: Write, tmp_path: Path) -> None:
    playing({"ask": "touch a"})
    one = editor()
    session = one.opened(tmp_path)
    number = one.begin_prompt(session, "Go.")
    question = one.question()
    one.send(method="session/cancel", params={"sessionId": session})
    one.send(id=question["id"], result={"outcome": {"outcome": "cancelled"}})

    assert one.answer_to(number)["result"]["stopReason"] == "cancelled"
    assert "still open" not in one.written()


def test_a_conversation_is_listed_and_loaded_again(editor: Start, write_team: Write, tmp_path: Path) -> None:
    write_team(max="Hello.")
    first = editor()
    session = first.opened(tmp_path)
    first.prompt(session, "Hi there.")
    first.leave()
    one = editor()
    one.ask("initialize", protocolVersion=1)

    [listed] = one.ask("session/list", cwd=str(tmp_path))["sessions"]
    assert one.ask("session/list", cwd=str(tmp_path), cursor="9" * 5000)["sessions"] == [listed]
    assert (listed["sessionId"], listed["title"], listed["cwd"]) == (session, "Hi there.", str(tmp_path))
    loaded = one.ask("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
    assert loaded["modes"]["currentModeId"] == "default"
    assert [update["content"]["text"] for update in one.updates("user_message_chunk")] == ["Hi there."]
    assert one.written() == "**max:**\n\nHello."
    assert one.prompt(session, "Again.") == "**max:**\n\nHello."
    one.ask("session/close", sessionId=session)
    assert one.refusal("session/prompt", sessionId=session, prompt=[])[0] == -32002
    one.ask("session/resume", sessionId=session, cwd=str(tmp_path), mcpServers=[])
    assert one.prompt(session, "Again.") == "**max:**\n\nHello."


def test_what_is_open_elsewhere_is_not_loaded_and_another_team_may_not_read_it(
    editor: Start, write_team: Write, tmp_path: Path
) -> None:
    team = write_team(max="Hello.")
    first = editor()
    session = first.opened(tmp_path)
    first.prompt(session, "Hi.")
    one = editor()
    one.ask("initialize", protocolVersion=1)
    code, why = one.refusal("session/load", sessionId=session, cwd=str(tmp_path))
    assert code == -32603
    assert f"Conversation {session} is open in process {first.process.pid}" in why
    first.leave()

    (tmp_path / "other.toml").write_text(team.read_text(), encoding="utf-8")
    other = editor("other.toml", "--trust")
    other.ask("initialize", protocolVersion=1)
    code, why = other.refusal("session/load", sessionId=session, cwd=str(tmp_path))
    assert (code, why) == (
        -32603,
        f"{session} is a conversation of {team}. To continue it, start bullpen acp {team}.",
    )
    assert other.ask("session/list")["sessions"] == []


def test_without_a_file_the_team_is_that_of_the_project(editor: Start, write_team: Write, tmp_path: Path) -> None:
    write_team(max="Hello.")
    one = editor("--trust")
    session = one.opened(tmp_path)

    assert one.prompt(session, "Hi.") == "**max:**\n\nHello."
    (tmp_path / "empty").mkdir()
    code, why = one.refusal("session/new", cwd=str(tmp_path / "empty"), mcpServers=[])
    assert code == -32603
    assert "team.toml" in why


def test_a_team_file_that_nobody_has_agreed_to_is_not_run(editor: Start, write_team: Write, tmp_path: Path) -> None:
    team = write_team(max="Hello.")
    one = editor("team.toml")
    one.ask("initialize", protocolVersion=1)

    code, why = one.refusal("session/new", cwd=str(tmp_path), mcpServers=[])

    assert code == -32603
    assert f"{team} is not trusted, so nothing in it was run." in why
    assert f"bullpen chat {team}" in why


def test_an_editor_that_closes_in_the_middle_of_a_prompt_loses_nothing(
    editor: Start, write_team: Write, tmp_path: Path, home: Path
) -> None:
    write_team(max="Built. [NEXT: sarah]", sarah=[{"wait_for": "go"}, {"say": "Looks good."}])
    one = editor()
    session = one.opened(tmp_path)
    one.begin_prompt(session, "Go.")
    one.until(lambda message: "Built." in str(message))

    one.close()
    (tmp_path / "go").touch()
    assert one.leave() == 0
    assert stored(home) == ["Go.", "Built. [NEXT: sarah]", "Looks good."]


def test_a_prompt_that_was_sent_just_before_the_editor_closed_is_answered(
    editor: Start, write_team: Write, tmp_path: Path, home: Path
) -> None:
    write_team(max="Hello.")
    one = editor()
    session = one.opened(tmp_path)
    one.begin_prompt(session, "Go.")

    assert one.leave() == 0
    assert stored(home) == ["Go.", "Hello."]


def test_a_question_survives_the_editor_and_is_answered_in_another_door(
    editor: Start,
    playing: Write,
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
) -> None:
    monkeypatch.setenv("BULLPEN_HOME", environment["BULLPEN_HOME"])
    monkeypatch.setenv("XDG_STATE_HOME", environment["XDG_STATE_HOME"])
    playing({"ask": "touch a"})
    one = editor()
    session = one.opened(tmp_path)
    one.begin_prompt(session, "Go.")
    one.question()
    assert one.process.stdin is not None
    one.process.stdin.close()
    with SqliteStore(home / "data" / "conversations.db") as store:
        until(lambda: inbox(store))
        [item] = inbox(store)
        token = owner_token(store, session)
    assert token is not None
    decide(token, Decided(action="yes", given=dict(item.decision.choices[0].given), by="kim"))

    assert one.process.wait(PATIENCE_SECONDS) == 0
    assert len(stored(home)) == 2


def test_what_was_begun_in_another_door_comes_to_its_end_without_the_editor(
    editor: Start,
    write_team: Write,
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
) -> None:
    monkeypatch.setenv("BULLPEN_HOME", environment["BULLPEN_HOME"])
    monkeypatch.setenv("XDG_STATE_HOME", environment["XDG_STATE_HOME"])
    write_team(max="Hello.", sarah=[{"wait_for": "go"}, {"say": "Looks good."}])
    one = editor()
    session = one.opened(tmp_path)
    one.prompt(session, "Go.")
    with SqliteStore(home / "data" / "conversations.db") as store:
        token = owner_token(store, session)
    assert token is not None

    decide(token, Decided(action="ask", given={"names": "sarah"}, by="kim"))

    one.close()
    (tmp_path / "go").touch()
    assert one.leave() == 0
    assert stored(home) == ["Go.", "Hello.", "Looks good."]


def test_a_session_that_is_closed_in_the_middle_of_a_prompt_ends_it(
    editor: Start, write_team: Write, tmp_path: Path, home: Path
) -> None:
    write_team(max=[{"say": "I begin."}, {"hang": True}])
    one = editor()
    session = one.opened(tmp_path)
    number = one.begin_prompt(session, "Go.")
    one.until(lambda message: "I begin." in str(message))

    closing = [one.begin("session/close", sessionId=session) for _ in range(2)]
    assert one.answer_to(closing[0])["result"] == {}
    assert "bug" not in str(one.answer_to(closing[1]))
    assert one.answer_to(number)["result"]["stopReason"] == "cancelled"
    assert stored(home) == ["Go."]


def test_it_can_be_watched_in_the_browser_at_the_same_time(
    editor: Start, write_team: Write, tmp_path: Path, home: Path
) -> None:
    team = write_team(max=[{"say": "I begin."}, {"hang": True}])
    one = editor()
    session = one.opened(tmp_path)
    one.prompt(session, "/task Build the login.")
    one.begin_prompt(session, "Go and build.")
    one.until(lambda message: "I begin." in str(message))

    async def look() -> str:
        async with (
            site(home / "data", team) as served,
            httpx.AsyncClient(base_url=served.url, timeout=60) as client,
        ):
            await client.post(served.new_url(), headers={"Origin": served.url})
            return (await client.get(f"/c/{session}")).text

    page = asyncio.run(look())
    assert "Go and build." in page
    assert f"It is open in process {one.process.pid}" in page


def test_a_signal_ends_it_at_once_and_everything_is_stored(
    editor: Start, write_team: Write, tmp_path: Path, home: Path
) -> None:
    write_team(max=[{"say": "I begin."}, {"hang": True}])
    one = editor()
    session = one.opened(tmp_path)
    one.begin_prompt(session, "Go.")
    one.until(lambda message: "I begin." in str(message))
    one.process.send_signal(signal.SIGTERM)

    assert one.process.wait(PATIENCE_SECONDS) == 143
    with SqliteStore(home / "data" / "conversations.db") as store:
        [conversation] = store.conversations()
        assert conversation.owner is None
        assert store.turn(conversation.id, "1").state == "interrupted"
