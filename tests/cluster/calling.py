"""A machine with a `claude` that calls the tools of its turn, as its script says, and notes what it hears.

The script is a list of steps: ["call", tool, arguments], ["wait", file] until that exists in its folder, and
["say", text] at the end. Each answer is a line of the file `answers`.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.cluster.processes import Started
from tests.cluster.stage import POOL, WORKER, WorkerStage

PROGRAM = """\
import json, os, pathlib, subprocess, sys, time
if "--version" in sys.argv:
    print("2.1.207 (Claude Code)")
    sys.exit()
if sys.argv[1:] == ["auth", "status"]:
    sys.exit()
here = pathlib.Path()
if not (here / "script").exists():
    sys.exit("this is not the folder of a turn")
(here / "arguments").write_text(json.dumps(sys.argv))
config = sys.argv[sys.argv.index("--mcp-config") + 1] if "--mcp-config" in sys.argv else ""
server = json.loads(config)["mcpServers"]["bullpen"] if config else None
if server is not None:
    command = [server["command"], *server["args"]]
    mcp = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
for number, (kind, *given) in enumerate(json.loads((here / "script").read_text()), start=1):
    if kind == "wait":
        while not (here / given[0]).exists():
            time.sleep(0.02)
    elif kind == "call":
        params = {"name": given[0], "arguments": given[1]}
        mcp.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}) + "\\n")
        mcp.stdin.flush()
        answer = json.loads(mcp.stdout.readline())["result"]
        with (here / "answers").open("a") as answers:
            answers.write(json.dumps([answer["content"][0]["text"], answer["isError"]]) + "\\n")
    else:
        say = json.dumps([{"say": given[0]}])
        command = [sys.executable, "-m", "bullpen.testing.agent", "--as", "claude", "--script", say, *sys.argv[1:]]
        os.execv(sys.executable, command)
"""


class CallingStage(WorkerStage):
    """A worker whose agent calls tools, and a team of kim, lea and that agent, max."""

    def prepare(self, *steps: list[Any], keys: str = "") -> Path:
        """Write all files, and return that of the team."""
        program = self.file.with_name("bin") / "claude"
        program.parent.mkdir()
        program.write_text(f"#!{sys.executable}\n{PROGRAM}")
        program.chmod(0o755)
        (self.folder / "script").write_text(json.dumps(steps))
        self.write_file(agents=["claude"], permissions="edit")
        team = self.file.with_name("team.toml")
        team.write_text(
            'name = "stage"\nlead = "max"\n[[member]]\nname = "kim"\n'
            f'[[member]]\nname = "max"\ncwd = "project"\npool = "{POOL}"\nagent = "claude"\nmemory = "shared"\n'
            f'window = 0\ntools = true\n{keys}\n[[member]]\nname = "lea"\ncommand = ["echo", "I am lea."]\n'
        )
        return team

    @property
    def path(self) -> str:
        """Where the worker finds programs."""
        return os.pathsep.join([str(self.file.with_name("bin")), os.environ["PATH"]])

    def start_worker(self, **environment: str) -> Started:
        return self._processes.start(WORKER, self.url, POOL, str(self.file), PATH=self.path, **environment)

    @property
    def answers(self) -> list[tuple[str, bool]]:
        """What the agent has heard so far."""
        file = self.folder / "answers"
        return [tuple(json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []

    async def until_answered(self, count: int) -> list[tuple[str, bool]]:
        while len(self.answers) < count:
            await asyncio.sleep(0.01)
        return self.answers
