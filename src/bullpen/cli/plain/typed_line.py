"""ChatLines: what becomes of the lines that a person sends in a chat, at a terminal or through a pipe."""

import asyncio
import contextlib
import io
import shlex
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bullpen.cli.plain.transcript import Show
from bullpen.cli.typed_commands import to_type
from bullpen.conversation.conversation import Conversation
from bullpen.database import Database
from bullpen.errors import BullpenError
from bullpen.text.numbers import counted, local_time
from bullpen.view.addressees import WHO_ANSWERS
from bullpen.view.choices import Choice, Decision
from bullpen.view.command_arguments import Member, Nothing, Text
from bullpen.view.commands import Typed, run_command
from bullpen.view.entered import NO_WORDS, YES_WORDS, Entered, chosen, entered
from bullpen.view.state import conversation_view
from bullpen.view.status_lines import queue_lines, who_lines

if TYPE_CHECKING:
    from bullpen.view.explanation import Explanation

MOST_DIFF_LINES = 300
"""That /diff writes between the lines of a chat."""
MOST_LISTED = 100
"""Lines of /changes, the latest."""
HELP = f"""
Everything else is said to the team. {WHO_ANSWERS}
@name at the beginning names somebody else; later in a message it adds somebody, who answers after that.
Tab completes names and commands. A line that ends in \\ continues in the next. Arrow up: what you sent before.
Ctrl-C cancels running turns; twice, it leaves. Ctrl-D leaves."""


class ShownCommands:
    """Shows in one chat what commands ask for."""

    def __init__(
        self, conversation: Conversation, show: Show, leave: Callable[[], None], db: Path | None, others: str = ""
    ) -> None:
        """Show it; `others` says where other conversations are opened, if not in a shell."""
        self._others = others
        self._conversation = conversation
        self._show = show
        self._leave = leave
        self._db = db

    async def run(self, typed: Typed) -> None:
        """Show what a command asks for."""
        await HANDLERS[typed.command.name](self, typed.given)

    async def _queue(self, _: Nothing) -> None:
        self._show.text("\n".join(queue_lines(conversation_view(self._conversation))))

    async def _who(self, _: Nothing) -> None:
        self._show.text("\n".join(who_lines(self._conversation)))

    # What few people ask for is imported when they do: the chat is ready for input sooner.

    async def _prompt(self, given: Member) -> None:
        from bullpen.cli.plain.explanation import prompt_lines
        from bullpen.view.explanation import explain_now

        explanation = await explain_now(self._conversation, given.member)
        self._show.text("\n".join(prompt_lines(explanation)))

    async def _explain(self, given: Text) -> None:
        from bullpen.cli.plain.explanation import print_explanation
        from bullpen.view.turn_lookup import LAST

        explanation = await self._conversation.read(_explanation, given.text or LAST)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            print_explanation(explanation, self._db)
        self._show.text(printed.getvalue().rstrip("\n"))

    async def _diff(self, given: Text) -> None:
        from bullpen.cli.diff import nothing_changed
        from bullpen.cli.plain.diff import diff_lines
        from bullpen.view.change_lookup import find_changes, is_of_several
        from bullpen.view.combined_changes import kept_beside, with_combined

        records = await self._conversation.read(find_changes, given.text)
        if not records:
            self._show.note(await self._conversation.read(nothing_changed, given.text))
            return
        if is_of_several(given.text):
            records = await asyncio.to_thread(with_combined, records, await self._conversation.read(kept_beside))
        if self._show.lines(lambda colours: diff_lines(records, colours), most=MOST_DIFF_LINES):
            words = shlex.join(["diff", *given.text.split(), "--session", self._conversation.id])
            self._show.note(f"… There is more: {to_type(words, self._db)}")

    async def _changes(self, _: Nothing) -> None:
        from bullpen.cli.diff import nothing_changed
        from bullpen.cli.plain.diff import list_rows
        from bullpen.view.change_lookup import all_changes
        from bullpen.view.changes import changes_of
        from bullpen.view.combined_changes import kept_beside

        records = await self._conversation.read(all_changes)
        if not records:
            self._show.note(await self._conversation.read(nothing_changed, ""))
            return
        changes = await asyncio.to_thread(changes_of, records, await self._conversation.read(kept_beside))
        rows = list(list_rows(records, changes))
        if (earlier := len(rows) - MOST_LISTED) > 0:
            words = shlex.join(["diff", "all", "--stat", "--session", self._conversation.id])
            self._show.note(f"… {counted(earlier, 'earlier change')}: {to_type(words, self._db)}")
        self._show.table(rows[-MOST_LISTED:])

    async def _checks(self, given: Text) -> None:
        from bullpen.view.checks import checks_text, find_checks

        self._show.text(checks_text(await self._conversation.read(find_checks, given.text)))

    async def _compare(self, given: Text) -> None:
        from bullpen.cli.plain.diff import diff_lines
        from bullpen.view.best_of import result_changes, results_of

        found = await self._conversation.read(results_of, given.text)
        for result in found.results:
            about = " · ".join(filter(None, [f"turn {result.turn}", result.summary, result.about]))
            self._show.heading(result.member, about)
            self._show.text(result.reply)
            for check in result.checks:
                self._show.text(f"{check.sign} {check.words}")
            if any(check.light == "red" for check in result.checks):
                self._show.note(f"What they wrote: /checks {result.turn}")
            records = await self._conversation.read(result_changes, result)
            if self._show.lines(partial(diff_lines, records), most=MOST_DIFF_LINES):
                self._show.note(f"… There is more: /diff {result.turn}")
        self._show.note(f"{found.text}{' /pick NAME, /discard NAME or /discard all' if found.can_be_decided else ''}")

    async def _summaries(self, _: Nothing) -> None:
        from bullpen.view.summaries import summaries_text

        self._show.text(await self._conversation.read(summaries_text, self._conversation.progress))

    async def _search(self, given: Text) -> None:
        from bullpen.view.listing import search_in

        hits = await self._conversation.read(search_in, given.text)
        for hit in hits:
            self._show.note(f"#{hit.sequence} {hit.speaker}  {local_time(hit.timestamp)}")
            self._show.text(f"  {' '.join(hit.snippet.split())}")
        if not hits:
            self._show.note(f"Nothing found for {given.text}.")

    async def _export(self, given: Text) -> None:
        from bullpen.exchange.files import export_named

        path = await self._conversation.read(export_named, given.text)
        self._show.note(f"Written to {shlex.quote(str(path))}.")

    async def _open(self, _: Text | Nothing) -> None:
        if self._others:
            self._show.note(self._others)
            return
        self._show.note(f"Leave with /quit: {self._conversation.id} is kept. Then, in your shell:")
        ways = (
            ("chat", "begin a new conversation"),
            ("sessions", "list your conversations"),
            ("chat --resume ID", "continue one of them"),
        )
        self._show.table([(to_type(words, self._db), purpose) for words, purpose in ways])

    async def _help(self, given: Text) -> None:
        from bullpen.view.help import all_sections, help_sections

        view = conversation_view(self._conversation)
        for title, rows in (all_sections if given.text else help_sections)(view).items():
            self._show.text(f"{title}:")
            self._show.table(rows, indent="  ")
        self._show.text(HELP)

    async def _quit(self, _: Nothing) -> None:
        self._leave()


HANDLERS: dict[str, Callable[[ShownCommands, Any], Awaitable[None]]] = {
    "queue": ShownCommands._queue,
    "who": ShownCommands._who,
    "prompt": ShownCommands._prompt,
    "explain": ShownCommands._explain,
    "diff": ShownCommands._diff,
    "changes": ShownCommands._changes,
    "checks": ShownCommands._checks,
    "compare": ShownCommands._compare,
    "summaries": ShownCommands._summaries,
    "search": ShownCommands._search,
    "export": ShownCommands._export,
    "open": ShownCommands._open,
    "new": ShownCommands._open,
    "help": ShownCommands._help,
    "quit": ShownCommands._quit,
}


def _explanation(database: Database, conversation_id: str, reference: str) -> "Explanation":
    from bullpen.view.explanation import explain
    from bullpen.view.turn_lookup import find_turn

    return explain(database, conversation_id, find_turn(database, conversation_id, reference).id)


LEAVES, STAYS = "leaves, and cancels what runs", "stays"


class ChatLines:
    """Messages, commands and answers, as lines or as keys."""

    def __init__(
        self,
        conversation: Conversation,
        show: Show,
        sender: str | None,
        db: Path | None = None,
        addressed: Callable[[str], str] = lambda text: text,
        others: str = "",
    ) -> None:
        """Do what lines say; `addressed` may add to a message whom it asks, `others` is for ShownCommands."""
        self.wants_to_leave = False
        self.unsent = ""
        """The last message, if it could not be sent."""
        self._conversation = conversation
        self._show = show
        self._sender = sender
        self._addressed = addressed
        self._asked_to_leave = False
        self._shown = ShownCommands(conversation, show, self.leave, db, others)

    def line(self, text: str, begun: Sequence[Decision]) -> str:
        """Return what Enter does with a text, in a line."""
        if self._asked_to_leave and (word := text.strip().casefold()) in (*YES_WORDS, *NO_WORDS):
            return LEAVES if word in YES_WORDS else STAYS
        return self._entered(text, begun).line

    async def take(self, text: str, begun: Sequence[Decision] | None = None) -> bool:
        """Do what a line says. Return whether that worked; if not, the person was told why.

        An answer is about what was asked when the line was begun; without that, about what is written now.
        """
        self.unsent = ""
        if self._asked_to_leave:
            self._asked_to_leave = False
            word = text.strip().casefold()
            self.wants_to_leave = word in YES_WORDS
            if self.wants_to_leave or word in ("", *NO_WORDS):
                return True
        return await self._attempt(self._entered(text, self._show.asked() if begun is None else begun))

    async def choose(self, choice: Choice, card: Decision) -> bool:
        """Do what a key on a card says."""
        return await self._attempt(chosen(choice, card))

    async def _attempt(self, what: Entered) -> bool:
        try:
            await self._do(what)
        except BullpenError as error:
            self._show.note(f"! {error}", "red")
            return False
        except OSError as error:
            self._show.note(f"! {error.strerror or error}", "red")
            return False
        return True

    def _entered(self, text: str, shown: Sequence[Decision]) -> Entered:
        return entered(self._conversation, text, shown, self._sender)

    async def _do(self, what: Entered) -> None:
        typed = what.command
        if typed is None:
            await self._say(what.text)
        elif typed.command.run is None:
            await self._shown.run(typed)
        elif told := await run_command(typed, self._conversation, self._sender):
            self._show.note(told)

    async def _say(self, text: str) -> None:
        if text.strip():
            self.unsent = text
            await self._conversation.say(self._addressed(text), sender=self._sender)
            self.unsent = ""

    def leave(self) -> None:
        """Leave if no turn is running; else ask first."""
        names = [running.turn.member for running in self._conversation.running.values()]
        if not names:
            self.wants_to_leave = True
            return
        self._asked_to_leave = True
        verb = "is" if len(names) == 1 else "are"
        self._show.note(f"{', '.join(names)} {verb} working. Leave, and cancel that? [y/N]", "yellow")
