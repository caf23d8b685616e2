"""`bullpen chat`: talk with a team on the full screen, in a plain terminal, or line by line without one."""

import argparse
import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any

from bullpen.app import open_team
from bullpen.cli.exit_codes import ENDINGS, Ending, ending_of, say_next
from bullpen.cli.logs import logs_held_back
from bullpen.cli.opening import Opening, add_opening_options, prepare
from bullpen.cli.plain.transcript import Show
from bullpen.cli.plain.typed_line import ChatLines
from bullpen.cli.signals import Interruptions
from bullpen.cli.viewer import following, greet, show_state
from bullpen.errors import how_to_install
from bullpen.terminal.colors import Colours, wants_colours
from bullpen.terminal.page import StreamPage
from bullpen.terminal.raw_mode import is_terminal
from bullpen.view.state import conversation_view


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("file", nargs="?", type=Path, metavar="team.toml", help="the team file (default: team.toml)")
    parser.add_argument("--plain", action="store_true", help="line by line, without the full screen")
    add_opening_options(parser)


def run(options: argparse.Namespace) -> int:
    """Talk until the person leaves."""
    opening = prepare(options, options.file)
    if not is_terminal():
        return asyncio.run(_chat_in_lines(opening, options.sender))
    if _can_fill_the_screen(options):
        from bullpen.tui import run as run_on_full_screen

        with logs_held_back():
            return run_on_full_screen(
                opening.loaded,
                resume=opening.resume,
                db=opening.db,
                database=opening.database,
                sender=options.sender,
            )
    from bullpen.cli.plain.terminal_chat import chat_in_terminal

    return asyncio.run(chat_in_terminal(opening, options.sender))


def _can_fill_the_screen(options: argparse.Namespace) -> bool:
    if options.plain or os.environ.get("TERM", "dumb") == "dumb":
        return False
    if find_spec("textual") is None:
        print(f"For the full screen: {how_to_install('tui')}. This is the plain chat.", file=sys.stderr)
        return False
    return True


async def _chat_in_lines(opening: Opening, sender: str | None) -> int:
    """Send the lines of stdin one after the other, each when no turn is running any more."""
    interruptions = Interruptions()
    colours = Colours(opening.loaded.team, on=wants_colours(sys.stdout))
    with interruptions.taken():
        async with open_team(opening.loaded, resume=opening.resume, db=opening.opens) as conversation:
            show = Show(
                StreamPage(sys.stdout), colours, lambda: conversation_view(conversation).decisions, in_chat=True
            )
            if opening.resume is not None:
                await show_state(conversation, show)
            if sys.stdin.isatty():
                await greet(conversation, show, opening.db)
            lines = ChatLines(conversation, show, sender, opening.db)
            ending: Ending = "interrupted"
            all_done = True
            async with following(conversation, show.tell, show.catch_up) as follower:
                leaving = asyncio.ensure_future(interruptions.wait())
                async for text in typed_lines(leaving):
                    all_done = await lines.take(text) and all_done
                    quiet = asyncio.ensure_future(follower.until_quiet())
                    await asyncio.wait([quiet, leaving], return_when=asyncio.FIRST_COMPLETED)
                    quiet.result() if quiet.done() else quiet.cancel()
                    if lines.wants_to_leave or leaving.done():
                        break
                if not leaving.done():
                    ending = ending_of(conversation)
                leaving.cancel()
            say_next(conversation, ending, opening.db)
    if interruptions.exit_code is not None:
        return interruptions.exit_code
    return ENDINGS[ending] if all_done else ENDINGS[ending] or 1


CONTINUES = "\\"
READ_BYTES = 64 * 1024


async def typed_lines(leaving: "asyncio.Future[None]") -> AsyncIterator[str]:
    """Yield what comes until the end of the input, or until somebody wants to leave."""
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()

    def take(line: str | None) -> None:
        # The conversation may be over, and its loop with it.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(lines.put_nowait, line)

    # A thread of our own that nobody waits for: it may sit in a read that never ends.
    Thread(target=_read, args=(sys.stdin.fileno(), take), daemon=True, name="bullpen-stdin").start()
    block: list[str] = []
    while not leaving.done():
        line = asyncio.ensure_future(lines.get())
        waited_for: list[asyncio.Future[Any]] = [line, leaving]
        await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
        if not line.done():
            line.cancel()
            return
        text = line.result()
        if text is not None and text.endswith(CONTINUES):
            block.append(text.removesuffix(CONTINUES))
        elif text is not None or block:
            yield "\n".join([*block, text or ""])
            block = []
        if text is None:
            return


def _read(file: int, take: Callable[[str | None], None]) -> None:
    """Hand over lines, and None at the end. Not by way of sys.stdin: its lock would keep Python from ending."""
    unfinished = b""
    while data := _some(file):
        *whole, unfinished = (unfinished + data).split(b"\n")
        for line in whole:
            take(line.decode(errors="replace").removesuffix("\r"))
    if unfinished:
        take(unfinished.decode(errors="replace"))
    take(None)


def _some(file: int) -> bytes:
    try:
        return os.read(file, READ_BYTES)
    except OSError:
        return b""
