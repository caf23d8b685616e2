"""A person who says one thing to a genuine CLI, without anything of bullpen."""

import asyncio
from pathlib import Path

from tests.agents.real_cli.scene import read_call

from bullpen.testing.models import ModelServer, Reply
from bullpen.testing.settings import SETTINGS

QUESTION = "Please read notes.txt.\n请用中文总结。😀"
ANSWER = "文件有两行：alpha 和 beta。\n\n    indented"
COMMANDS = {
    "claude": ["claude", "-p", "--allowedTools", "Read"],
    "codex": ["codex", "exec", "--skip-git-repo-check"],
    "gemini": ["gemini", "-m", "gemini-2.5-flash"],
    "qwen": ["qwen", "-m", "qwen3-coder-plus"],
}


async def talk(cli: str, project: Path) -> None:
    """Say one thing to a CLI, which reads a file and answers."""
    async with ModelServer() as models:
        models.script(
            Reply(
                thinking="I should read it.",
                text="I will read it.",
                tool_calls=(read_call(cli, project / "notes.txt"),),
            ),
            Reply(text=ANSWER),
        )
        settings = SETTINGS[cli](models.base_url, project.parent / "home")
        last = ["-"] if cli == "codex" else []
        process = await asyncio.create_subprocess_exec(
            *[*COMMANDS[cli], *settings.arguments, *last],
            env=settings.env,
            cwd=project,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            output, _ = await asyncio.wait_for(process.communicate(QUESTION.encode()), timeout=120)
        except TimeoutError:
            process.kill()
            raise
        assert process.returncode == 0, output.decode()
