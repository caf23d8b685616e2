"""`bullpen run`: one message, unattended. The exit code says how it ended."""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Mapping

from msgspec.structs import replace

from bullpen.app import open_team
from bullpen.cli.attachments import add_attach_option, with_attachments
from bullpen.cli.exit_codes import ENDINGS, EXIT_CODES, Ending, asked_in, ending_of, say_next
from bullpen.cli.opening import Opening, add_opening_options, prepare
from bullpen.cli.option_types import at_least_one, seconds
from bullpen.cli.plain.transcript import Show
from bullpen.cli.signals import Interruptions
from bullpen.cli.team_and_message import add_words, message_text, team_and_message
from bullpen.cli.typed_commands import to_type
from bullpen.cli.viewer import Follower, following
from bullpen.clock import first_of
from bullpen.conversation.approvals import Unattended
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Checked, ConversationEvent, Said, event_json
from bullpen.errors import NothingRuns
from bullpen.messages import ConversationMessage
from bullpen.team.file import LoadedTeam
from bullpen.terminal.colors import Colours, wants_colours
from bullpen.terminal.page import StreamPage
from bullpen.text.plain_commands import is_rule
from bullpen.text.safe import printable
from bullpen.view.addressees import notes_outside_chat
from bullpen.view.choices import DecisionKey
from bullpen.view.commands import read_command, run_command
from bullpen.view.state import conversation_view


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.usage = 'bullpen run [options] [team.toml] ["message" | -]'
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXIT_CODES
    add_words(parser, "the team file, and what to say (-: stdin)")
    add_attach_option(parser)
    parser.add_argument("--json", action="store_true", help="print every event as one line of JSON")
    parser.add_argument("--max-turns", type=at_least_one, metavar="N", help="pause after N agent turns")
    parser.add_argument("--timeout", type=seconds, metavar="SECONDS", help="cancel running turns after SECONDS")
    parser.add_argument(
        "--approve",
        type=_rules,
        default=["deny"],
        metavar="ask|deny|RULES",
        help='what agents may do that ask first: what RULES allow ("pytest, git diff*"), nothing (deny; the default), '
        "or what a person answers elsewhere (ask)",
    )
    add_opening_options(parser)


def _rules(text: str) -> list[str]:
    """Return "ask", "deny", or rules that are separated by commas."""
    rules = [rule.strip() for rule in text.split(",") if rule.strip()]
    if wrong := [rule for rule in rules if not is_rule(rule)]:
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is not a rule: write a command in plain words, as in git diff*")
    return rules or ["deny"]


def run(options: argparse.Namespace) -> int:
    """Say it, show what happens, and return how it ended."""
    team, message = team_and_message(options, resumes=options.resume is not None)
    if message is None and options.resume is None and not options.attach:
        print(
            'bullpen run: say something: bullpen run team.toml "message", or - to read it from stdin.', file=sys.stderr
        )
        return 2
    message = with_attachments(message, options.attach)
    opening = prepare(options, team)
    if options.max_turns is not None:
        opening = replace(opening, loaded=_with_fewer_turns(opening.loaded, options.max_turns))
    return asyncio.run(_run(opening, message_text(message), options))


async def _run(opening: Opening, message: str | None, options: argparse.Namespace) -> int:
    interruptions = Interruptions()
    with interruptions.taken():
        async with open_team(opening.loaded, resume=opening.resume, db=opening.opens) as conversation:
            if options.approve != ["ask"]:
                rules = tuple(rule for rule in options.approve if rule != "deny")
                conversation.approvals.unattended = Unattended(allow=rules)
            show, checks, reviews = _show(conversation), _Checks(), dict(conversation.progress.reviews)
            resume = to_type(f"chat --resume {conversation.id}", opening.db)
            tell, pause = (
                (_print_json, lambda: None)
                if options.json
                else (lambda event: show.tell(_without_slash_commands(event, resume)), show.catch_up)
            )
            async with following(conversation, lambda event: tell(checks.noting(event)), pause) as follower:
                ending = await say_and_wait(conversation, follower, message, options, interruptions)
            if ending == "done" and checks.is_any_broken:
                ending = "red"
            if ending == "done" and _was_ended(conversation, reviews):
                ending = "unapproved"
            say_next(conversation, ending, opening.db, why=checks.why_nobody)
    return interruptions.exit_code if interruptions.exit_code is not None else ENDINGS[ending]


async def say_and_wait(
    conversation: Conversation,
    follower: Follower,
    message: str | None,
    options: argparse.Namespace,
    interruptions: Interruptions,
) -> Ending:
    """Return how it ended: by itself, by the timeout, or by a signal."""
    said, asked_before = None, frozenset[DecisionKey]()
    if message is None:
        await conversation.continue_turns(by=options.sender)
    elif typed := read_command(message, conversation.team):
        # As in every door: no agent gets it as a message.
        if told := await run_command(typed, conversation, options.sender):
            print(printable(told), file=sys.stderr if options.json else sys.stdout)
    else:
        asked_before = asked_in(conversation)
        said = (await conversation.say(message, sender=options.sender)).message
    quiet = asyncio.ensure_future(follower.until_quiet())
    leaving = asyncio.ensure_future(interruptions.wait())
    await first_of([quiet, leaving], options.timeout)
    leaving.cancel()
    if quiet.done():
        quiet.result()
        ending = ending_of(conversation, asked_before)
        return "nobody" if ending == "done" and _asked_nobody(conversation, said) else ending
    quiet.cancel()
    with contextlib.suppress(NothingRuns):
        await conversation.cancel(by=options.sender, asks=True)
    await follower.until_shown()
    return "interrupted" if interruptions.exit_code is not None else "timeout"


class _Checks:
    """What the checks said last that ran meanwhile, and what was wrong with the message."""

    def __init__(self) -> None:
        self.why_nobody = ""
        self._last: dict[tuple[str, str], bool] = {}

    @property
    def is_any_broken(self) -> bool:
        """Whether a check was red when it last ran in a folder."""
        return any(self._last.values())

    def noting(self, event: ConversationEvent) -> ConversationEvent:
        """Return an event, after remembering what it says of a check, or of a message."""
        if isinstance(event, Said) and event.notes:
            self.why_nobody = event.notes[0]
        if isinstance(event, Checked):
            self._last[event.result.name, event.result.workspace] = event.result.is_broken
        return event


def _without_slash_commands(event: ConversationEvent, resume: str) -> ConversationEvent:
    """Return an event that advises nothing that can only be typed in a chat."""
    return replace(event, notes=notes_outside_chat(event.notes, resume)) if isinstance(event, Said) else event


def _was_ended(conversation: Conversation, before: Mapping[str, object]) -> bool:
    """Return whether a person has ended a review meanwhile without an approval."""
    now = conversation.progress.reviews
    return any(one.state == "ended" and one != before.get(name) for name, one in now.items())


def _asked_nobody(conversation: Conversation, said: ConversationMessage | None) -> bool:
    """Return whether a message named nobody in the team, so that no turn began."""
    if said is None or conversation.progress.turns:
        return False
    return said.routing is None or not said.routing.resolved_addressees


def _show(conversation: Conversation) -> Show:
    colours = Colours(conversation.team, on=wants_colours(sys.stdout))
    return Show(StreamPage(sys.stdout), colours, lambda: conversation_view(conversation).decisions, in_chat=False)


def _print_json(event: ConversationEvent) -> None:
    line = event_json(event)
    # A program gets every byte; a terminal only what it would show.
    sys.stdout.buffer.write((printable(line.decode()).encode() if sys.stdout.isatty() else line) + b"\n")
    sys.stdout.buffer.flush()


def _with_fewer_turns(loaded: LoadedTeam, most: int) -> LoadedTeam:
    limits = loaded.team.limits
    fewer = replace(limits, turns_per_message=min(most, limits.turns_per_message))
    return replace(loaded, team=replace(loaded.team, limits=fewer))
