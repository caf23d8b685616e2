"""The rules that Claude Code gets: ours, and of the user's those that deny."""

import json
from pathlib import Path

import pytest

from bullpen.agents import Permission, agent_spec
from bullpen.agents.claude_rules import ASKED, DENIED, OFFERED, rule_arguments


def rules_for(environment: dict[str, str]) -> dict[str, list[str]]:
    flag, settings = rule_arguments(environment, False)
    assert flag == "--managed-settings"
    read = json.loads(settings)
    assert read["allowManagedPermissionRulesOnly"] is True
    assert read["sandbox"] == {"autoAllowBashIfSandboxed": False}
    permissions: dict[str, list[str]] = read["permissions"]
    return permissions


@pytest.mark.parametrize("variable", ["HOME", "CLAUDE_CONFIG_DIR"])
def test_what_the_user_denies_stays_denied_and_what_is_allowed_does_not(variable: str, tmp_path: Path) -> None:
    folder = tmp_path / ".claude" if variable == "HOME" else tmp_path
    folder.mkdir(exist_ok=True)
    denied = ["Read(./.env)", "Read(//etc/**)", "Read(~/.ssh/**)", "Read(/own.txt)", "Bash(rm:*)", "WebFetch", 1]
    permissions = {"allow": ["Bash"], "deny": denied, "ask": ["Bash(git push:*)"], "defaultMode": "bypassPermissions"}
    (folder / "settings.json").write_text(json.dumps({"permissions": permissions}))

    rules = rules_for({"HOME": "/nowhere", variable: str(tmp_path)})

    own = f"Read(/{folder}/own.txt)"
    assert rules == {
        "allow": [],
        "deny": [*DENIED, "Read(./.env)", "Read(//etc/**)", "Read(~/.ssh/**)", own, "Bash(rm:*)", "WebFetch"],
        "ask": [*ASKED, "Bash(git push:*)"],
    }


@pytest.mark.parametrize("text", ["", "{", "[]", '{"permissions": 1}', '{"permissions": {"deny": "x"}}', "[" * 100_000])
def test_settings_that_cannot_be_read_deny_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(text)

    assert rules_for({"CLAUDE_CONFIG_DIR": str(tmp_path)}) == {
        "allow": [],
        "deny": [*DENIED],
        "ask": [*ASKED],
    }


@pytest.mark.parametrize("permissions", ["read-only", "edit", "ask"])
def test_it_has_no_tool_whose_work_outlives_the_turn(permissions: Permission) -> None:
    spec = agent_spec("claude").with_permissions(permissions)

    arguments = spec.arguments(permissions, None, ())

    assert arguments[arguments.index("--tools") + 1] == OFFERED[1]
    assert not {"CronCreate", "ScheduleWakeup", "Config", "EnterWorktree", "SendMessage"} & {*OFFERED[1].split(",")}


def test_no_skill_of_its_own_frees_what_is_asked() -> None:
    assert agent_spec("claude").with_permissions("ask").settings["CLAUDE_CODE_DISABLE_BUNDLED_SKILLS"] == "1"
