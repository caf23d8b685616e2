"""What a project has for a CLI, and a member with few permissions does not get."""

from pathlib import Path

from bullpen.agents.registry import agent_spec
from bullpen.team.left_out import left_out_words


def write(folder: Path, *names: str, text: str = "{}") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def test_each_kind_is_named_with_its_files(tmp_path: Path) -> None:
    claude = agent_spec("claude")
    write(tmp_path, ".claude/skills/ship/SKILL.md", ".claude/agents/critic.md", ".claude/commands/go.md")
    write(tmp_path, ".mcp.json", text='{"mcpServers": {"db": {"command": "db-server"}}}')
    write(tmp_path, ".claude/settings.json", text='{"hooks": {"Stop": [{"hooks": [{"command": "say"}]}]}}')
    write(tmp_path, ".claude/settings.local.json", text="{}")

    named = left_out_words(claude, "edit", tmp_path)

    assert named.startswith("skills, subagents, commands, MCP servers, hooks and settings (.claude/agents/critic.md, ")
    assert named == left_out_words(claude, "ask", tmp_path) == left_out_words(claude, "read-only", tmp_path)
    assert left_out_words(claude, "full", tmp_path) == ""


def test_nothing_is_said_where_there_is_nothing_or_it_is_read(tmp_path: Path) -> None:
    assert left_out_words(agent_spec("claude"), "edit", tmp_path) == ""
    write(tmp_path, ".github/copilot/x", ".mcp.json")

    assert left_out_words(agent_spec("copilot"), "edit", tmp_path) == "", "it does not start without people's yes"
