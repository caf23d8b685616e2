"""Trials: a genuine CLI whose model wants many commands, and people who say yes or no to each at random.

The evidence is what each command would write: nothing before the yes, one line for each yes, and nothing for a no.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.agents.real_cli.turn import Turn

from bullpen.approvals import Answer
from bullpen.testing.models import Reply, ToolCall
from bullpen.turn_events import ApprovalAsked

EVERY_CLI = ("claude", "codex", "gemini", "qwen", "opencode")
FILES = 8
"""So few that every command is wanted again and again."""
ANYTHING_ELSE = 8
"""What the model says after its last command, and to the reasons that it gets then."""


def command_calls(cli: str, commands: Sequence[str]) -> Reply:
    """Return a model's wish to run commands, as each CLI offers that."""
    return Reply(tool_calls=tuple(_call(cli, command) for command in commands))


def _call(cli: str, command: str) -> ToolCall:
    about: dict[str, Any] = {"command": command, "description": "x"}
    match cli:
        case "claude":
            return ToolCall(name="Bash", arguments=about)
        case "codex":
            return ToolCall(name="exec_command", arguments={"cmd": command})
        case "vibe":
            return ToolCall(name="bash", arguments={"command": command})
        case "opencode" | "pi" | "copilot":
            return ToolCall(name="bash", arguments=about)
        case "qwen":
            return ToolCall(name="run_shell_command", arguments={**about, "is_background": False})
        case _:
            return ToolCall(name="run_shell_command", arguments=about)


class Trials:
    """One turn of a CLI, with a question for each command."""

    def __init__(self, cli: str, folder: Path, seed: int) -> None:
        self.turn = Turn(cli, folder)
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()
        self._random = random.Random(f"{cli} {seed}")
        self._agreed: Counter[str] = Counter()
        self._is_refused = False
        """Whether the last answer was no."""

    def run(self, trials: int) -> None:
        """Let its model want so many commands, one after the other."""
        (self.turn.cwd / "add.sh").write_text('echo x >> "$1"\n')
        wanted = [f"sh add.sh f{self._random.randrange(FILES)}" for _ in range(trials)]
        script = [command_calls(self.turn.cli, [command]) for command in wanted]
        last = [Reply(text="done")] * ANYTHING_ELSE
        working = self.turn.run(
            *script, *last, permissions="ask", ask=self._answer, idle_timeout=300, total_timeout=3600
        )
        asyncio.run(working)
        asked = [question.command for question in self.turn.of(ApprovalAsked)]
        # Some end their turn after a no, and are told why once: what their model wanted next, nobody knows.
        is_ended = self._is_refused and len(asked) < trials
        if len(asked) != trials and not is_ended:
            self.problems.append(f"{self.turn.cli} asked {len(asked)} times for {trials} commands")
        self._compare("at the end")

    async def _answer(self, question: ApprovalAsked) -> Answer:
        self.counts["questions"] += 1
        self._compare(f"before {question.command!r} was answered")
        await asyncio.sleep(self._random.choice([0, 0, 0.05]))
        self._compare(f"before {question.command!r} was answered")
        self._is_refused = self._random.random() < 0.5
        if self._is_refused:
            self.counts["no"] += 1
            return Answer(verdict="no")
        self.counts["yes"] += 1
        self._agreed[question.command.strip("'").rpartition(" ")[2]] += 1
        return Answer(verdict="yes")

    def _compare(self, when: str) -> None:
        """Compare what was written with what people have agreed to: every earlier command has ended by now."""
        written = Counter({file.name: len(file.read_text().split()) for file in self.turn.cwd.glob("f*")})
        if early := written - self._agreed:
            self.problems.append(f"{self.turn.cli}: {dict(early)} ran without a yes {when}")
        if missing := self._agreed - written:
            self.problems.append(f"{self.turn.cli}: {dict(missing)} did not run {when}")
