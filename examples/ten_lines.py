"""A conversation in ten lines: open a team, say something, watch, close."""

import asyncio
import sys

from bullpen import open_team


async def main(team_file: str) -> None:
    """Say one thing to a team, and print what is said until everybody is done."""
    async with open_team(team_file) as conversation:
        with conversation.viewing() as events:
            await conversation.say("Please add a dark theme, and have it reviewed.")
            await conversation.until_quiet()
        async for numbered in events:
            print(numbered.event)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/ten_lines.py team.toml    (bullpen init writes one)")
    asyncio.run(main(sys.argv[1]))
