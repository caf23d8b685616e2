"""`bullpen sessions watch`."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from bullpen.app import open_team


def test_a_second_process_watches_what_the_first_one_runs(tmp_path: Path) -> None:
    agent = [
        sys.executable,
        "-m",
        "bullpen.testing.agent",
        "--as",
        "text",
        "--script",
        '[{"say":"Hello \\u001b[31mkim."}]',
    ]
    team = f'[[member]]\nname = "kim"\n[[member]]\nname = "max"\ncommand = {json.dumps(agent)}\n'
    (tmp_path / "team.toml").write_text(team, encoding="utf-8")
    database = tmp_path / "c.db"

    async def converse() -> str:
        async with open_team(tmp_path / "team.toml", db=database) as conversation:
            await conversation.say("Good morning, 马克斯")
            await conversation.until_quiet()
            command = [sys.executable, "-m", "bullpen", "sessions", "watch", "last", "--db", str(database)]
            watching = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
            assert watching.stdout is not None
            printed = await watching.stdout.readuntil("◆ waits for kim.".encode())
            await conversation.say("And again")
            await conversation.until_quiet()
            conversation_id = conversation.id
        printed += await watching.stdout.read()
        assert await watching.wait() == 0
        return printed.decode().replace(conversation_id, "ID")

    printed = asyncio.run(converse())

    assert "\x1b" not in printed
    assert next(line for line in printed.splitlines() if line.startswith("#")).startswith("#1  kim → max")
    assert printed.count("Hello kim.") == 2
    assert printed.index("Good morning, 马克斯") < printed.index("And again")
    assert printed.rstrip().endswith(
        f"(No process is running it now. Continue it: bullpen chat --resume ID --db {database})"
    )
