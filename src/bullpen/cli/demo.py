"""`bullpen demo`: a small team working from a script. No account is needed."""

import argparse
import asyncio
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import bullpen
from bullpen.app import open_team
from bullpen.cli.database import add_database_option
from bullpen.cli.demo_story import EXPLAINED_TURN, FIRST_WORDS, SCRIPTS, TEAM, YOU, Step
from bullpen.cli.plain.explanation import print_explanation
from bullpen.cli.plain.transcript import Show
from bullpen.cli.signals import Interruptions
from bullpen.cli.typed_commands import to_type
from bullpen.cli.viewer import following
from bullpen.config import data_folder
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.member_agent import Extra
from bullpen.errors import BullpenError
from bullpen.team.file import LoadedTeam, load_team
from bullpen.terminal.colors import Colours, wants_colours
from bullpen.terminal.page import StreamPage
from bullpen.text.safe import printable
from bullpen.view.explanation import explain
from bullpen.view.state import conversation_view

# The agents' programs: each turn follows the next script of its member.
PROGRAM = """\
#!/bin/sh
for script in "$BULLPEN_DEMO_SCRIPTS"/*.json; do
  mv "$script" "$script.played"
  exec {python} -m bullpen.testing.agent --as {cli} --script "$script.played" "$@"
done
"""
LETTER_SECONDS = 0.02


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("--fast", action="store_true", help="leave out the pauses that make it pleasant to watch")
    add_database_option(parser)


def run(options: argparse.Namespace) -> int:
    """Tell the story, and say where to go next."""
    pace = 0.0 if options.fast else 1.0
    folder = _folder()
    # A database of its own, so that it is not mixed with the conversations that people have.
    db = options.db or folder / "conversations.db"
    loaded = load_team(folder / "team.toml")
    with tempfile.TemporaryDirectory(prefix="bullpen-demo-") as stage:
        return asyncio.run(_play(loaded, _extras(loaded, Path(stage), pace), pace, db))


async def _play(loaded: LoadedTeam, extras: Mapping[str, Extra], pace: float, db: Path) -> int:
    colours = Colours(loaded.team, on=wants_colours(sys.stdout))
    page = StreamPage(sys.stdout)
    interruptions = Interruptions()
    with interruptions.taken():
        async with open_team(loaded, db=db, extra=extras) as conversation:
            show = Show(
                page,
                colours,
                lambda: conversation_view(conversation).decisions,
                in_chat=True,
                repeats_people=False,
            )
            show.note("Three agents and you build something. The agents follow a script: nothing is sent anywhere.")
            story = asyncio.ensure_future(_tell(conversation, show, page, pace))
            leaving = asyncio.ensure_future(interruptions.wait())
            await asyncio.wait([story, leaving], return_when=asyncio.FIRST_COMPLETED)
            leaving.cancel()
            if not story.done():
                story.cancel()
                await asyncio.gather(story, return_exceptions=True)
                return interruptions.exit_code or 0
            story.result()
            explanation = await conversation.read(explain, EXPLAINED_TURN)
    show.note(f"\nWhat did ben see in turn {EXPLAINED_TURN}, and what not?", "bold")
    print()
    print_explanation(explanation, db)
    _say_where_to_go(show, loaded, db)
    return 0


async def _tell(conversation: Conversation, show: Show, page: StreamPage, pace: float) -> None:
    async with following(conversation, show.tell, show.catch_up) as follower:
        await _type(page, FIRST_WORDS, pace)
        await conversation.say(FIRST_WORDS, sender=YOU)
        await follower.until_quiet()
        # Mei forgot the marker. This is what a person does about it.
        await asyncio.sleep(1.5 * pace)
        await _type(page, "1 Ask ben", pace)
        await conversation.ask("ben")
        await follower.until_quiet()
        await asyncio.sleep(pace)


async def _type(page: StreamPage, text: str, pace: float) -> None:
    """Write a text as a person would."""
    page.write(f"\n{YOU} ▸ ")
    for letter in text.replace("\n", "\n  … "):
        await asyncio.sleep(LETTER_SECONDS * pace)
        page.write(letter)
    await asyncio.sleep(0.3 * pace)
    page.write("\n")


def _folder() -> Path:
    """Make the folder that the team works in. It stays, and with it what they build."""
    data = data_folder()
    folder = data / "demo"
    try:
        data.parent.mkdir(parents=True, exist_ok=True)
        # The folder of all data, if there is none yet: only its owner may look inside.
        data.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / "team.toml").write_text(TEAM, encoding="utf-8")
        # What the agents remember is not what they build.
        (folder / ".gitignore").write_text("sessions/\n", encoding="utf-8")
        (folder / "tea.py").unlink(missing_ok=True)
    except OSError as error:
        raise BullpenError(f"{folder} cannot be used: {error.strerror}. Set BULLPEN_HOME to another folder.") from error
    return folder


def _extras(loaded: LoadedTeam, stage: Path, pace: float) -> dict[str, Extra]:
    """Put programs in the place of the real CLIs, for this one conversation."""
    programs = stage / "bin"
    programs.mkdir()
    extras = {}
    for member in loaded.team.agents:
        program = programs / member.agent
        program.write_text(PROGRAM.format(python=shlex.quote(sys.executable), cli=member.agent), encoding="utf-8")
        program.chmod(0o700)
        scripts = stage / member.name
        scripts.mkdir()
        for number, steps in enumerate(SCRIPTS[member.name]):
            (scripts / f"{number}.json").write_text(json.dumps([_at(pace, step) for step in steps]), encoding="utf-8")
        path = os.pathsep.join([str(programs), os.environ.get("PATH", os.defpath)])
        where = str(Path(bullpen.__file__).parent.parent)
        env = {"PATH": path, "PYTHONPATH": where, "BULLPEN_DEMO_SCRIPTS": str(scripts)}
        # Where they remember: not in the folders of the real CLIs.
        homes = {name: str(loaded.root / "sessions" / name.lower()) for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME")}
        extras[member.name] = Extra(env={**env, **homes})
    return extras


def _at(pace: float, step: Step) -> Step:
    """Return a step with its pauses at another pace, but for those that keep the order."""
    match step:
        case {"sleep": seconds, "keeps_order": True}:
            return {"sleep": seconds}
        case {"sleep": seconds}:
            return {"sleep": seconds * pace}
        case {"delay": seconds}:
            return {**step, "delay": seconds * pace}
        case {"tool": tool}:
            return {"tool": {**tool, "seconds": tool.get("seconds", 0.0) * pace}}
        case _:
            return step


def _say_where_to_go(show: Show, loaded: LoadedTeam, db: Path) -> None:
    tea = shlex.quote(str(loaded.root / "tea.py"))
    lines = [
        "",
        "All of it is stored, apart from your own conversations. Look around:",
        f"  {to_type('sessions show', db)}",
        f"  {to_type('explain 3 --diff mei', db)}",
        f"  python3 {tea} 3",
        "",
        "Now with your own agents:",
        f"  {to_type('doctor')}     which of them are ready",
        f"  {to_type('init')}       a team file for them",
        f"  {to_type('chat')}       talk with them",
    ]
    show.text(printable("\n".join(lines)))
