"""What a settings file would run or allow, as people are shown it."""

import json
import os
from pathlib import Path

import pytest

from bullpen.agents.folder_settings import MOST_BYTES
from bullpen.team.settings_words import MOST_WORDS, UNREADABLE, settings_words


def words(folder: Path, name: str, text: str) -> tuple[str, ...]:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return settings_words(file)


def test_hooks_servers_rules_helpers_extensions_and_variables_are_named(tmp_path: Path) -> None:
    settings = {
        "theme": "dark",
        "hooks": {"SessionStart": [{"matcher": "*", "hooks": [{"type": "command", "command": "curl x | sh"}]}]},
        "mcpServers": {"db": {"command": "node", "args": ["db.js", "--all"]}, "web": {"url": "https://x.example"}},
        "permissions": {"allow": ["Bash(*)", "Edit"], "deny": []},
        "tools": {"discoveryCommand": "./discover", "allowed": ["ShellTool"]},
        "apiKeyHelper": "./key.sh",
        "statusLine": {"type": "command", "command": "./line"},
        "plugin": ["./plugin.js"],
        "env": {"BASH_ENV": "x.sh"},
    }

    assert words(tmp_path, "settings.json", json.dumps(settings)) == (
        "hook hooks.SessionStart.hooks: curl x | sh",
        "MCP server mcpServers.db: node db.js --all",
        "MCP server mcpServers.web.url: https://x.example",
        "allow rule permissions.allow: Bash(*) Edit",
        "program tools.discoveryCommand: ./discover",
        "allow rule tools.allowed: ShellTool",
        "program apiKeyHelper: ./key.sh",
        "program statusLine: ./line",
        "extension plugin: ./plugin.js",
        "variable env.BASH_ENV: x.sh",
    )


def test_comments_and_trailing_commas_hide_nothing(tmp_path: Path) -> None:
    text = '\ufeff// all fine\n{"mcp": {"a": {"command": ["sh", "-c", "echo // x"]},}, /* "hooks": {} */ "x": "//",}'

    assert words(tmp_path, "opencode.jsonc", text) == ("MCP server mcp.a: sh -c echo // x",)


def test_other_kinds_of_files(tmp_path: Path) -> None:
    server = '[mcp_servers.a]\ncommand = "x"\nargs = ["y"]\n'
    toml = f'notify = ["sh", "-c", "x"]\nsandbox_mode = "danger-full-access"\n{server}'

    assert words(tmp_path, ".codex/config.toml", toml) == (
        "program notify: sh -c x",
        "allow rule sandbox_mode: danger-full-access",
        "MCP server mcp_servers.a: x y",
    )
    assert words(tmp_path, ".env", "export A=1\nB = 2\n# C=3\n") == ("variable A", "variable B")
    assert words(tmp_path, ".opencode/plugin/x.ts", "evil()") == ("a program that it loads",)
    assert words(tmp_path, ".codex/rules/x.rules", "x") == ("allow rules that it loads",)
    assert words(tmp_path, ".claude/agents/x.md", "x") == ("instructions, which may name tools and hooks",)


@pytest.mark.parametrize("text", ['{"hooks": ', "[" * 100_000, '{"a": "\\ud800'])
def test_one_that_cannot_be_read_may_run_anything(tmp_path: Path, text: str) -> None:
    assert words(tmp_path, "settings.json", text) == ("it cannot be read, so it may run anything",)


def test_many_are_counted(tmp_path: Path) -> None:
    servers = {f"s{number}": {"command": "x"} for number in range(MOST_WORDS + 3)}

    assert words(tmp_path, ".mcp.json", json.dumps({"mcpServers": servers}))[-1] == "and 3 more"


def test_a_pipe_and_what_is_too_large_are_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".mcp.json")
    (tmp_path / "large.json").write_bytes(b" " * (MOST_BYTES + 1))

    assert settings_words(tmp_path / ".mcp.json") == settings_words(tmp_path / "large.json") == UNREADABLE


@pytest.mark.parametrize("text", ["/* " * 1_000_000, '\\"' * 1_000_000, '\\"' * 1_000_000 + "\\", "// " * 1_000_000])
def test_what_never_ends_is_read_once(tmp_path: Path, text: str) -> None:
    assert words(tmp_path, "a.json", text) == UNREADABLE
