"""Settings that a folder brings along: found, compared, and left out."""

import json
import os
from pathlib import Path

import pytest

from bullpen.agents.folder_settings import (
    ALL_SETTINGS,
    MOST_BYTES,
    UNREADABLE,
    FolderSettings,
    Reading,
    SettingsFile,
    reading,
    settings_in,
)
from bullpen.agents.registry import agent_spec, known_agents, spec_for
from bullpen.agents.settings_choice import HINT, choose_settings
from bullpen.turn_events import Failed, Notice

EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
BOTH = FolderSettings(files=("a.json", "b/*"), always_read=("b/*",), why="it always does")


def put(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def names(files: tuple[SettingsFile, ...]) -> list[str]:
    return [file.name for file in files]


def test_settings_are_found_in_a_folder_and_above_it(tmp_path: Path) -> None:
    put(
        tmp_path,
        ".mcp.json",
        "in/.qwen/settings.json",
        "in/below/.env",
        "in/below/.gemini/policies/x.toml",
        "in/x.json",
    )

    found = settings_in(tmp_path / "in" / "below", ALL_SETTINGS)

    assert found == tuple(
        SettingsFile(name, EMPTY)
        for name in ("../../.mcp.json", "../.qwen/settings.json", ".env", ".gemini/policies/x.toml")
    )


def test_what_is_in_the_users_home_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, ".mcp.json", "project/.mcp.json")
    monkeypatch.setenv("HOME", str(tmp_path))

    assert names(settings_in(tmp_path / "project", ALL_SETTINGS)) == [".mcp.json"]
    assert settings_in(tmp_path, ALL_SETTINGS) == ()


def test_nobody_is_asked_about_a_folder_in_which_everybody_may_write(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    put(shared, ".mcp.json", "project/.mcp.json")
    shared.chmod(0o777)

    assert names(settings_in(shared / "project", ALL_SETTINGS)) == [".mcp.json"]
    assert names(settings_in(shared, ALL_SETTINGS)) == [".mcp.json"]


def test_what_is_above_a_folder_that_does_not_exist_yet_counts(tmp_path: Path) -> None:
    put(tmp_path, ".mcp.json")

    assert names(settings_in(tmp_path / "later" / "below", ALL_SETTINGS)) == ["../../.mcp.json"]


def test_a_link_is_what_it_leads_to_and_one_to_nothing_is_found_too(tmp_path: Path) -> None:
    put(tmp_path, "elsewhere/settings.json", "project/x")
    (tmp_path / "project" / ".qwen").symlink_to("../elsewhere")
    (tmp_path / "project" / ".mcp.json").symlink_to("nothing")

    assert settings_in(tmp_path / "project", ALL_SETTINGS) == (
        SettingsFile(".mcp.json", UNREADABLE),
        SettingsFile(".qwen/settings.json", EMPTY),
    )


def test_a_pipe_and_a_huge_file_cannot_be_agreed_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".mcp.json")
    with (tmp_path / ".env").open("wb") as file:
        file.truncate(MOST_BYTES + 1)

    found = settings_in(tmp_path, ALL_SETTINGS)

    assert found == (SettingsFile(".env", UNREADABLE), SettingsFile(".mcp.json", UNREADABLE))
    assert Reading(reads=found).not_agreed({file.mark for file in found}) == found


def test_settings_count_only_with_full_permissions_unless_the_cli_always_reads_them(tmp_path: Path) -> None:
    put(tmp_path, "a.json", "b/c")
    a, b = SettingsFile("a.json", EMPTY), SettingsFile("b/c", EMPTY)

    assert reading(BOTH, "full", tmp_path) == Reading(reads=(a, b), must=(b,))
    for permission in ("read-only", "edit", "ask"):
        assert reading(BOTH, permission, tmp_path) == Reading(reads=(b,), must=(b,), left_out=(a,))


def test_a_change_needs_a_new_agreement_and_a_removal_does_not(tmp_path: Path) -> None:
    put(tmp_path, "a.json", "b/c")
    agreed = reading(BOTH, "full", tmp_path).marks

    (tmp_path / "a.json").write_text("{}")
    assert names(reading(BOTH, "full", tmp_path).not_agreed(agreed)) == ["a.json"]

    (tmp_path / "a.json").unlink()
    assert reading(BOTH, "full", tmp_path).not_agreed(agreed) == ()


def test_every_known_cli_says_which_settings_it_reads() -> None:
    ways = [way for spec in known_agents().values() for way in (spec, spec.with_permissions("ask"))]

    assert [way.name for way in ways if not way.folder_settings.files] == []
    assert spec_for("acp", ["x"]).folder_settings.always_read == ALL_SETTINGS
    assert spec_for("", ["sh", "-c", "claude -p"], name="x").folder_settings.always_read == ALL_SETTINGS
    assert spec_for("", ["echo", "hello"], name="x").folder_settings.files == ()


def test_nothing_changes_where_there_are_no_settings(tmp_path: Path) -> None:
    for spec in known_agents().values():
        choice = choose_settings(spec, "full", tmp_path, frozenset, {})
        assert (choice.spec, choice.environment, choice.refusal, choice.notice) == (spec, {}, None, None)


@pytest.mark.parametrize(
    ("agent", "file", "permission", "arguments"),
    [
        ("claude", ".mcp.json", "full", ("--setting-sources", "user")),
        ("pi", ".pi/extensions/x.js", "full", ("--no-extensions",)),
        ("gemini", ".gemini/settings.json", "edit", ("--skip-trust",)),
    ],
)
def test_a_cli_is_started_without_settings(
    tmp_path: Path, agent: str, file: str, permission: str, arguments: tuple[str, ...]
) -> None:
    spec = agent_spec(agent)

    choice = choose_settings(spec, permission, put(tmp_path, file), frozenset, {})  # type: ignore[arg-type]

    assert choice.spec.command == (*spec.command, *arguments)
    said = f"It was started without {file}: nobody has agreed to these settings. `bullpen chat` asks."
    assert choice.notice == (Notice(kind="warning", text=said) if permission == "full" else None)


def test_codex_trusts_neither_the_folder_nor_one_above_it(tmp_path: Path) -> None:
    folder = put(tmp_path, ".codex/config.toml", "in/x") / "in"

    command = choose_settings(agent_spec("codex"), "edit", folder, frozenset, {}).spec.command

    assert command[-2] == "-c"
    assert command[-1].startswith(f'projects={{"{folder}"={{trust_level="untrusted"}},"{tmp_path}"={{trust_level=')


def test_codex_trusts_a_folder_in_this_run_only_if_somebody_has_agreed(tmp_path: Path) -> None:
    spec, folder = agent_spec("codex"), put(tmp_path, ".codex/config.toml")
    agreed = reading(spec.folder_settings, "full", folder).marks

    command = choose_settings(spec, "full", folder, lambda: agreed, {}).spec.command

    assert command[:-1] == (*spec.command, "-c")
    assert command[-1].startswith(f'projects={{"{folder}"={{trust_level="trusted"}},')


def test_qwen_code_trusts_no_folder_and_is_told_which_tools_are_allowed(tmp_path: Path) -> None:
    put(tmp_path, ".qwen/settings.json")
    spec = agent_spec("qwen")

    choice = choose_settings(spec, "edit", tmp_path, frozenset, {})

    # With its version: otherwise Qwen Code would write it into the file.
    assert [json.loads(Path(file).read_text()) for file in choice.environment.values()] == [
        {"security": {"folderTrust": {"enabled": True}}, "$version": 4},
        {"/": "DO_NOT_TRUST"},
    ]
    assert choice.spec.permissions["edit"][-1] == "edit,write_file,notebook_edit"
    assert choice.spec.permissions["read-only"] == spec.permissions["read-only"]


def test_qwen_code_is_not_started_where_an_organisation_has_its_own_settings(tmp_path: Path) -> None:
    put(tmp_path, ".qwen/settings.json", "company.json")
    own = str(tmp_path / "company.json")

    choice = choose_settings(agent_spec("qwen"), "ask", tmp_path, frozenset, {"QWEN_CODE_SYSTEM_SETTINGS_PATH": own})

    why = f"{own} has the settings of your organisation, which would be left out, too"
    said = f"qwen was not started: it would read .qwen/settings.json, to which nobody has agreed ({why})."
    assert choice.refusal == Failed(kind="permission_refused", message=said, hint=HINT)


def test_with_an_agreement_a_cli_is_started_as_usual(tmp_path: Path) -> None:
    spec = agent_spec("opencode")
    agreed = reading(spec.folder_settings, "ask", put(tmp_path, "opencode.json")).marks

    assert choose_settings(spec, "ask", tmp_path, lambda: agreed, {}).refusal is None
    (tmp_path / "opencode.json").write_text("{}")
    said = (
        "opencode was not started: it would read opencode.json, to which nobody has agreed "
        "(it has no option to leave them out)."
    )
    refused = choose_settings(spec, "ask", tmp_path, lambda: agreed, {}).refusal
    assert refused == Failed(kind="permission_refused", message=said, hint=HINT)
