"""Genuine agents' own words in the Agent Client Protocol, recorded: what each becomes, and what they are told."""

import json
from pathlib import Path
from typing import Any

import pytest

from bullpen.agents import AgentSpec, agent_spec
from bullpen.agents.acp_driver import AcpDriver
from bullpen.agents.driver import Driver, Opening
from bullpen.approvals import Answer
from bullpen.context.report import PromptReport
from bullpen.conversation.recorded_events import recorded_events
from bullpen.store.base import TurnRecord
from bullpen.turn_events import (
    ApprovalAsked,
    Event,
    Failed,
    Finished,
    Notice,
    Started,
    TextDelta,
    Thinking,
    ToolFinished,
    ToolStarted,
    Usage,
)

RECORDINGS = Path(__file__).parent / "recordings" / "asking"
FOLDER = "/home/dev/project"
CLIS = ("gemini", "qwen", "opencode", "vibe")
every_cli = pytest.mark.parametrize("cli", CLIS)
YES = Answer(verdict="yes")
NO = Answer(verdict="no", reason="REASON-42 use make instead")
STOP = Answer(verdict="stop")
VERSIONS = {"gemini": "0.61.0", "qwen": "0.24.4", "opencode": "1.18.33", "vibe": "3.0.2"}
ALLOWED = {"gemini": "proceed_once", "qwen": "proceed_once", "opencode": "once", "vibe": "allow_once"}
SET_MODE = {
    "opencode": ("session/set_config_option", {"configId": "mode", "value": "bullpen"}),
    "vibe": ("session/set_mode", {"modeId": "ask"}),
}
REFUSED = {"gemini": "cancel", "qwen": "cancel", "opencode": "reject", "vibe": "reject_once"}


def spec_of(cli: str) -> AgentSpec:
    return agent_spec(cli).with_permissions("ask")


class Played:
    """A recorded turn, in which every question gets an answer."""

    def __init__(self, cli: str, case: str, *answers: Answer) -> None:
        self.events: list[Event] = []
        self.sent: list[Any] = []
        make = spec_of(cli).driver
        assert make is not None
        self.driver: Driver = make(Opening(prompt="hello", folder=FOLDER, permissions="ask"))
        assert isinstance(self.driver, AcpDriver)
        given = iter(answers)
        for line in (RECORDINGS / cli / f"{case}.jsonl").read_text(encoding="utf-8").splitlines():
            self._send()
            for event in self.driver.parse(json.loads(line)):
                self.events.append(event)
                if isinstance(event, ApprovalAsked):
                    self.driver.answer(event.id, next(given))
        self._send()

    def _send(self) -> None:
        self.sent += self.driver.outgoing
        self.driver.outgoing.clear()

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def methods(self) -> list[str]:
        return [message["method"] for message in self.sent if "method" in message]

    @property
    def chosen(self) -> list[str]:
        return [message["result"]["outcome"].get("optionId") for message in self.sent if "outcome" in _result(message)]

    @property
    def prompts(self) -> list[str]:
        asked = [message for message in self.sent if message.get("method") == "session/prompt"]
        return [message["params"]["prompt"][0]["text"] for message in asked]


def _result(message: dict[str, Any]) -> dict[str, Any]:
    result = message.get("result")
    return result if isinstance(result, dict) else {}


@every_cli
def test_a_command_is_asked_and_runs_after_the_yes(cli: str) -> None:
    played = Played(cli, "yes", YES)

    (asked,) = played.of(ApprovalAsked)
    assert (asked.kind, asked.command, asked.folder) == ("command", "touch made.txt", FOLDER)
    assert played.chosen == [ALLOWED[cli]]
    (began,), (ended,) = played.of(ToolStarted), played.of(ToolFinished)
    assert began.input["command"] == "touch made.txt"
    assert (ended.id, ended.failed) == (began.id, False)
    assert "".join(piece.text for piece in played.of(TextDelta)) == "I run it.done"
    assert played.events[-1] == Finished("done")


@every_cli
def test_its_mode_is_set_before_it_is_asked_anything(cli: str) -> None:
    played = Played(cli, "yes", YES)

    method, mode = SET_MODE.get(cli, ("session/set_mode", {"modeId": "default"}))
    assert played.methods == ["initialize", "session/new", method, "session/prompt"]
    assert played.sent[2]["params"].items() >= mode.items()


@every_cli
def test_the_reason_of_a_no_is_in_its_next_prompt_if_it_has_ended_without_an_answer(cli: str) -> None:
    played = Played(cli, "no", NO)

    assert played.chosen == [REFUSED[cli]]
    first, *others = played.prompts
    assert first == "hello"
    if cli in ("gemini", "vibe"):
        # Their models hear of a no at once, and answer.
        assert others == []
    else:
        assert "'touch made.txt' is not allowed. REASON-42 use make instead" in others[0]
    (ended,) = played.of(ToolFinished)
    assert ended.failed
    assert [event for event in played.events if isinstance(event, Finished)] == [Finished("then not")]


@every_cli
def test_it_edits_in_its_folder_unasked_and_nothing_else(cli: str) -> None:
    played = Played(cli, "edit", NO, NO)

    questions = played.of(ApprovalAsked)
    assert questions[0].paths == (f"{FOLDER}/.gemini/settings.json",)
    assert questions[0].diff.endswith("@@ -0,0 +1,1 @@\n+made\n")
    # Gemini itself refuses to write outside of its folder.
    assert len(questions) == (1 if cli == "gemini" else 2)
    assert played.chosen == [ALLOWED[cli], *[REFUSED[cli]] * len(questions)]
    changed = [path for ended in played.of(ToolFinished) for path in ended.changed_files]
    assert changed == [f"{FOLDER}/new.txt"]


@every_cli
def test_a_no_that_stops_cancels_the_prompt(cli: str) -> None:
    played = Played(cli, "stop", STOP)

    assert played.methods[-1] == "session/cancel"
    assert played.chosen == [REFUSED[cli]]
    ending = played.events[-1]
    assert isinstance(ending, Failed)
    assert ending.kind == "permission_refused"


@every_cli
def test_it_says_what_it_is_and_what_it_used(cli: str) -> None:
    played = Played(cli, "yes", YES)

    started = played.events[0]
    assert isinstance(started, Started)
    assert started.cli_version == VERSIONS[cli]
    assert started.model in ("gemini-2.5-flash", "qwen3-coder-plus", "scripted/m1", "m1")
    used = played.of(Usage)[-1]
    # OpenCode tells only what its last request used.
    assert used.output_tokens == (22 if cli == "opencode" else 44)


@pytest.mark.parametrize("cli", ["gemini", "qwen"])
def test_thoughts_are_no_part_of_the_answer(cli: str) -> None:
    played = Played(cli, "plain")

    assert "deep thought" in played.of(Thinking)[0].text
    assert played.events[-1] == Finished("hello")


@pytest.mark.parametrize("cli", ["gemini", "qwen"])
def test_an_error_is_a_sentence(cli: str) -> None:
    ending = Played(cli, "err401").events[-1]

    assert isinstance(ending, Failed)
    assert "scripted error" in ending.message
    assert "401" in ending.message
    assert "{" not in ending.message


@pytest.mark.parametrize(
    ("cli", "command"), [("google-gemini", "gemini"), ("qwen-code", "qwen"), ("opencode", "opencode")]
)
def test_a_record_is_read_again(cli: str, command: str) -> None:
    record = TurnRecord(
        prompt="hello",
        system=None,
        report=PromptReport(agent_type=cli, max_bytes=1, section_bytes={}),
        command=(command, "acp" if cli == "opencode" else "--acp"),
        stream=(RECORDINGS / command / "no.jsonl").read_bytes(),
        stream_is_cut=False,
    )

    events = recorded_events(record)

    assert [event.input["command"] for event in events if isinstance(event, ToolStarted)] == ["touch made.txt"]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)).endswith(
        "ok, make" if cli == "google-gemini" else "then not"
    )


CASES = [f"{cli}/{path.stem}" for cli in CLIS for path in sorted((RECORDINGS / cli).glob("*.jsonl"))]


@pytest.mark.parametrize("case", CASES)
def test_nothing_in_a_recording_is_unknown(case: str) -> None:
    cli, name = case.split("/")

    assert Played(cli, name, *[NO] * 3).of(Notice) == []
