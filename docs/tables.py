"""Write the tables of the docs that come from the code: `make docs`. The tests check that they are up to date."""

import re
from pathlib import Path

from tests.agents.real_cli import install

from bullpen.agents.registry import agent_spec
from bullpen.agents.stream import MAX_LINE_BYTES
from bullpen.agents.transcript import MAX_TEXT_BYTES
from bullpen.cli.editor.session import MOST_REPLAYED
from bullpen.cli.editor.sessions import MOST_OPEN as MOST_IN_EDITOR
from bullpen.cli.within_agents import WITHIN_AGENTS, Row
from bullpen.context.manager import MAX_TEAM_TASK_BYTES
from bullpen.markers.grammar import MOST_MARKERS
from bullpen.store.packing import MAX_STREAM_BYTES
from bullpen.team.file import MAX_FILE_BYTES
from bullpen.team.team import DEFAULT_MAX_BYTES, DEFAULT_WINDOW_BYTES
from bullpen.tui.slash_commands import SCREEN_COMMANDS
from bullpen.view.commands import ACTIONS, COMMANDS
from bullpen.view.help import command_table
from bullpen.web.conversations import MOST_OPEN
from bullpen.web.guard import MOST_BODY_BYTES

DOCS = Path(__file__).parent

CLIS = {
    "claude": "Claude Code",
    "codex": "Codex",
    "gemini": "Gemini CLI",
    "qwen": "Qwen Code",
    "copilot": "GitHub Copilot CLI",
    "opencode": "OpenCode",
    "pi": "pi",
    "vibe-acp": "Mistral Vibe",
}
OTHER_AGENTS = "docs/agents.md#what-about-other-agents"

LIMITS = (
    ("a prompt", f"{DEFAULT_MAX_BYTES:,} bytes (`max_bytes`)", "the oldest messages are left out first"),
    ("earlier messages in it", f"{DEFAULT_WINDOW_BYTES:,} bytes (`window_bytes`)", "older ones are left out"),
    ("the team's task", f"{MAX_TEAM_TASK_BYTES:,} bytes", "the rest is cut off, and you are told"),
    ("an agent's answer", f"{MAX_TEXT_BYTES:,} bytes", "the turn fails, and what came is kept"),
    ("one line of a CLI's output", f"{MAX_LINE_BYTES:,} bytes", "the line is cut"),
    ("what a turn's program printed", f"{MAX_STREAM_BYTES:,} bytes, compressed", "the rest is not kept for `explain`"),
    ("markers in a message", f"{MOST_MARKERS:,}", "the rest is text"),
    ("a team file", f"{MAX_FILE_BYTES:,} bytes", "it is refused"),
    ("a message in the browser", f"{MOST_BODY_BYTES:,} bytes", "it is refused"),
    ("conversations open in `bullpen serve`", f"{MOST_OPEN:,}", "close one to open another"),
    ("conversations open in one [`bullpen acp`](editor.md)", f"{MOST_IN_EDITOR:,}", "close one to open another"),
    ("messages that an editor is shown when it loads one", f"{MOST_REPLAYED:,}", "it is shown the latest"),
)
"""What is limited, how far it goes, and what happens then."""


def tables() -> dict[str, str]:
    """Return every generated table by the page and the heading before it."""
    actions = ["| action | what it does |", "|---|---|"]
    actions += [f"| `{name}` | {command.purpose} |" for name, command in ACTIONS.items()]
    limits = ["| what | how much | what happens beyond it |", "|---|---|---|"]
    limits += [f"| {what} | {most} | {then} |" for what, most, then in LIMITS]
    within = ["| command | when an agent runs it |", "|---|---|"]
    within += [f"| `{name}` | {allowed_within(row)} |" for name, row in WITHIN_AGENTS.items()]
    return {
        "command-line.md#Within an agent": "\n".join([*within, ""]),
        "command-line.md#In a chat": command_table(COMMANDS.values()),
        "agents.md#Which versions are tested?": tested_versions("| CLI | install | version |"),
        "../README.md#Supported agents": tested_versions(
            "| | install | tested with |",
            f"any agent that speaks the [Agent Client Protocol]({OTHER_AGENTS})",
            "any program that reads a prompt from stdin and prints an answer",
        ),
        "../README.zh.md#支持的智能体": tested_versions(
            "| | 安装 | 测试过的版本 |",
            f"任何支持 [Agent Client Protocol]({OTHER_AGENTS}) 的智能体",
            "任何从标准输入读取提示词、把回答打印出来的程序",
        ),
        "terminal.md#Every command": command_table(SCREEN_COMMANDS),
        "limits.md#How much?": "\n".join([*limits, ""]),
        "web.md#Every action": "\n".join([*actions, ""]),
    }


def allowed_within(row: Row) -> str:
    """Return what becomes of a command that an agent runs, and why."""
    refused = "".join(f"; `--{option}` is refused: {why}" for option, why in row.but_not.items())
    return f"{'runs' if row.is_free else 'is refused'}: {row.why}{refused}"


def tested_versions(heading: str, *others: str) -> str:
    """Return a table of the CLIs that were tried, at the versions that the tests pin, and of others without one."""
    packages = {**install.COMMANDS, **install.OTHERS}
    pinned = install.versions(install.PINS, packages)
    versions = {**pinned, **install.NOT_INSTALLED}
    hints = {program: agent_spec(program.removesuffix("-acp")).hints["not_installed"] for program in CLIS}
    commands = {program: hint.removeprefix("Install it with: ").partition(" (")[0] for program, hint in hints.items()}
    rows = [f"| {name} | `{commands[program]}` | {versions[program]} |" for program, name in CLIS.items()]
    return "\n".join([heading, "|---|---|---|", *rows, *(f"| {other} | | |" for other in others), ""])


def with_table(text: str, heading: str, table: str) -> str:
    """Return a page with the first table after a heading replaced."""
    start = text.index(f"## {heading}\n")
    found = re.compile(r"^\| .+\n\|---.+\n(?:\|.+\n)*", re.MULTILINE).search(text, start)
    if found is None:
        raise ValueError(f"there is no table after {heading!r}")
    return text[: found.start()] + table + text[found.end() :]


def main() -> None:
    """Write every table into its page."""
    for place, table in tables().items():
        page, _, heading = place.partition("#")
        path = DOCS / page
        path.write_text(with_table(path.read_text(encoding="utf-8"), heading, table), encoding="utf-8")


if __name__ == "__main__":
    main()
