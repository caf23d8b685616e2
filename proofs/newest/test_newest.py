"""`make newest` sees what a release changes, without npm: recordings with planted changes, programs that stand in."""

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from proofs.newest import __main__ as newest
from proofs.newest import recording
from proofs.newest.difference import changes
from proofs.newest.recording import FLAGS, RECORDINGS, cases, record
from proofs.newest.scripts import scripts
from tests.agents.real_cli import install

CLIS = list(install.COMMANDS)


@pytest.fixture
def released(tmp_path: Path) -> Path:
    """The recordings of a release that changes nothing yet."""
    return shutil.copytree(RECORDINGS, tmp_path / "recordings")


def edit(file: Path, change: Callable[[str], str]) -> None:
    file.write_text(change(file.read_text(encoding="utf-8")), encoding="utf-8")


def test_the_same_recordings_differ_in_nothing(released: Path) -> None:
    assert changes(RECORDINGS, released) == []


def test_a_new_kind_of_record_is_seen(released: Path) -> None:
    edit(released / "claude" / "plain.jsonl", lambda text: text + '{"type":"system","subtype":"weather","sun":1}\n')

    assert changes(RECORDINGS, released) == ["claude: plain: new records: system/weather"]


def test_a_known_record_in_another_case_is_seen(released: Path) -> None:
    lines = (released / "claude" / "max_tokens.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    told_to_continue = [line for line in lines if '"isSynthetic":true' in line]
    edit(released / "claude" / "plain.jsonl", lambda text: "".join([text, *told_to_continue]))

    assert changes(RECORDINGS, released) == ["claude: plain: new records: user"]


def test_a_new_kind_of_content_is_seen(released: Path) -> None:
    file = released / "codex" / "plain.jsonl"
    edit(file, lambda text: text.replace('"type":"agent_message"', '"type":"agent_says"'))

    assert changes(RECORDINGS, released) == [
        "codex: plain: new records: item.completed > agent_says",
        "codex: plain: records that are gone: item.completed > agent_message",
    ]


def test_fields_are_told_once_for_all_cases_and_without_what_is_in_them(released: Path) -> None:
    for file in (released / "gemini").glob("*.jsonl"):
        edit(file, lambda text: text.replace('"type":"init"', '"type":"init","place":{"city":"x","road":[{"no":1}]}'))
    edit(released / "gemini" / "plain.jsonl", lambda text: text.replace('"total_tokens"', '"all_tokens"'))

    assert changes(RECORDINGS, released) == [
        "gemini: fields that are gone from result: stats.models.*.total_tokens, stats.total_tokens",
        "gemini: new fields in init: place",
        "gemini: new fields in result: stats.all_tokens, stats.models.*.all_tokens",
    ]


def test_flags_that_come_and_go_are_seen(released: Path) -> None:
    edit(released / "qwen" / FLAGS, lambda text: text.replace("--approval-mode\n", "--ask\n--sing\n"))

    assert changes(RECORDINGS, released) == [
        "qwen: new flags: --ask, --sing",
        "qwen: flags that are gone: --approval-mode",
    ]


def test_another_exit_code_and_a_case_that_did_not_end_are_seen(released: Path) -> None:
    edit(released / "claude" / "err401.run.json", lambda text: text.replace('"exit_code": 1', '"exit_code": 7'))
    (released / "claude" / "plain.jsonl").unlink()

    assert changes(RECORDINGS, released) == ["claude: err401: exit code 7, was 1", "claude: plain: was not recorded"]


def test_noise_between_the_records_is_seen(released: Path) -> None:
    edit(released / "gemini" / "plain.jsonl", lambda text: f"Loading...\n{text}")

    assert changes(RECORDINGS, released) == ["gemini: plain: new records: a line that is not JSON"]


@pytest.mark.parametrize("cli", CLIS)
def test_every_recorded_case_has_a_script(cli: str, tmp_path: Path) -> None:
    assert sorted(scripts(cli, tmp_path)) == cases(cli)


def program(folder: Path, name: str, *lines: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("\n".join(["#!/bin/sh", *lines, ""]), encoding="utf-8")
    (folder / name).chmod(0o755)


def test_what_a_program_writes_is_recorded_without_what_is_of_this_machine(tmp_path: Path) -> None:
    help_text = "Usage: x [--add-dir <folder>] [-p] [--system-prompt[-file] <text>]"
    program(
        tmp_path / "bin",
        "claude",
        f'case "$*" in *--help) echo "{help_text}"; exit;; esac',
        'printf \'{"type":"%s","cwd":"%s","home":"%s","model":"%s"}\\n\' "$(cat)" "$PWD" "$HOME" "$ANTHROPIC_BASE_URL"',
        'echo "$0 failed" >&2; exit 3',
    )

    assert asyncio.run(record(["claude"], tmp_path / "bin", tmp_path / "recordings")) == []

    recorded = tmp_path / "recordings" / "claude"
    assert (recorded / FLAGS).read_text(encoding="utf-8").split() == ["--add-dir", "--system-prompt", "-p"]
    assert sorted(file.stem for file in recorded.glob("*.jsonl")) == cases("claude")
    assert json.loads((recorded / "plain.jsonl").read_text(encoding="utf-8")) == {
        "type": "hi",
        "cwd": "/home/dev/project",
        "home": "/home/dev",
        "model": "http://127.0.0.1:9999",
    }
    run = json.loads((recorded / "plain.run.json").read_text(encoding="utf-8"))
    pinned = json.loads((RECORDINGS / "claude" / "plain.run.json").read_text(encoding="utf-8"))
    assert run == {"argv": pinned["argv"], "exit_code": 3, "stderr_tail": "/opt/agents/bin/claude failed\n"}


def test_a_program_that_does_not_end_is_told_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alive = tmp_path / "alive"
    alive.touch()
    program(tmp_path / "bin", "gemini", f'case "$*" in *--help) exit;; esac; (echo $$ >> {alive}; sleep 1000)')
    monkeypatch.setattr(recording, "TIMEOUT_SECONDS", 1)
    monkeypatch.setattr(recording, "cases", lambda cli: ["plain", "err401"])

    problems = asyncio.run(record(["gemini"], tmp_path / "bin", tmp_path / "recordings"))

    assert problems == [f"gemini/{case} did not end within 1 seconds" for case in ("plain", "err401")]
    assert [pid for pid in alive.read_text().split() if Path("/proc", pid).exists()] == []


NPM = (
    'case "$*" in *gemini-cli*|*"$LEFT_OUT"*) echo "npm error $1 failed" >&2; exit 1;; esac',
    'case "$1" in view) echo 1.2.3; exit;; esac',
    'grep -q "$BROKEN" package.json && { echo "npm error disk full" >&2; exit 1; }',
    "mkdir -p node_modules/.bin node_modules/@anthropic-ai/claude-code node_modules/opencode-ai",
    "for name in claude codex gemini qwen opencode pi copilot; do touch node_modules/.bin/$name; done",
)
"""An npm that knows no Gemini CLI, nor what LEFT_OUT names, and cannot install what BROKEN names."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of `make newest`, with programs that stand in for npm and node on the PATH."""
    program(tmp_path / "bin", "npm", *NPM)
    program(tmp_path / "bin", "node")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("LEFT_OUT", "nothing")
    monkeypatch.setenv("BROKEN", "@openai/codex")
    folder = tmp_path / "newest"
    monkeypatch.setattr(install, "NEWEST", str(folder))
    monkeypatch.setattr(install, "CACHE", folder)
    monkeypatch.setattr(install, "PACKAGES", folder / "package.json")
    return folder


def test_a_cli_that_cannot_be_installed_is_left_out_and_the_others_are_tried(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded: list[str] = []

    async def record_nothing(clis: list[str], programs: Path, into: Path) -> list[str]:
        recorded.extend(clis)
        into.mkdir()
        return []

    monkeypatch.setattr(newest, "record", record_nothing)
    monkeypatch.setattr(newest, "failures", lambda log: [])
    (place / "claude-0.0.1" / "node_modules").mkdir(parents=True)

    assert newest.main() == 2

    assert recorded == ["claude", "qwen"]
    assert sorted(path.name for path in install.binaries().iterdir()) == ["claude", "copilot", "opencode", "pi", "qwen"]
    assert not (place / "claude-0.0.1").exists()
    printed = capsys.readouterr()
    assert printed.err.splitlines()[-2:] == [
        "!!! gemini IS NOT TRIED: npm does not know @google/gemini-cli: npm error view failed",
        "!!! codex IS NOT TRIED: npm failed with exit code 1: npm error disk full",
    ]
    assert "No test failed." in printed.out

    # What is installed is not installed again, and a test that fails counts more than a CLI that is left out.
    (place / "claude-1.2.3" / "kept").touch()
    monkeypatch.setenv("BROKEN", "nothing")
    monkeypatch.setattr(newest, "failures", lambda log: ["FAILED a test"])
    shutil.rmtree(place / "recordings")
    assert newest.main() == 1
    assert install.is_installed("codex")
    assert (place / "claude-1.2.3" / "kept").exists()


def test_the_installer_says_which_cli_is_missing(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place.mkdir()
    packages = {"dependencies": dict.fromkeys(install.ALL.values(), "1.2.3")}
    install.PACKAGES.write_text(json.dumps(packages), encoding="utf-8")

    install.main()

    why = "npm failed with exit code 1: npm error disk full"
    assert capsys.readouterr().err == f"!!! codex IS NOT INSTALLED, and its tests will be skipped: {why}\n"
    assert install.missing() == ["codex"]


@pytest.mark.parametrize(("here", "wants", "beside"), [("20.20.2", ">=22.19.0", 1), ("24.1.0", ">=22.19.0", 0)])
def test_a_newer_node_is_installed_beside_a_cli_that_wants_one(
    here: str, wants: str, beside: int, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = "node_modules/@earendil-works/pi-coding-agent"
    says = json.dumps({"engines": {"node": wants}})
    program(
        tmp_path / "bin",
        "npm",
        'echo "$@" >> npm.log',
        f"mkdir -p node_modules/.bin {package}; touch node_modules/.bin/pi; echo '{says}' > {package}/package.json",
    )
    program(tmp_path / "bin", "node", f"echo v{here}")
    place.mkdir()
    install.PACKAGES.write_text(json.dumps({"dependencies": {install.ALL["pi"]: "1.2.3"}}), encoding="utf-8")

    assert install.install_all(["pi"]) == {}

    log = (place / "pi-1.2.3" / "npm.log").read_text().splitlines()
    assert [line.endswith(" node@24") for line in log] == [False, *[True] * beside]


def test_tests_that_fail_and_tests_that_are_skipped_are_told_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\n\ndef test_good(): pass\n\n\ndef test_bad(): assert 1 == 2\n\n\n"
        "def test_later(): pytest.skip('not today')\n"
    )
    monkeypatch.setattr(newest, "TESTS", (str(tmp_path / "test_it.py"),))
    monkeypatch.setattr(newest, "AT_ONCE", ("-n", "0"))

    (failed,) = newest.failures(tmp_path / "tests.txt")

    assert failed.startswith("FAILED ")
    assert failed.endswith("test_it.py::test_bad - assert 1 == 2")
    printed = capsys.readouterr().out
    assert "Their tests: 1 failed, 1 passed, 1 skipped in " in printed
    assert "not today" in printed


def test_tests_that_cannot_run_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newest, "TESTS", (str(tmp_path / "nothing.py"),))
    monkeypatch.setattr(newest, "AT_ONCE", ("-n", "0"))

    assert len(newest.failures(tmp_path / "tests.txt")) == 1


def test_without_a_registry_it_says_so_and_tries_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LEFT_OUT", "view")

    assert newest.main() == 2

    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == ("!!! claude IS NOT TRIED: npm does not know @anthropic-ai/claude-code: npm error view failed")
    assert len(lines) == len(install.ALL)
