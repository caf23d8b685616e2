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
from bullpen.view.command_arguments import Member, Nothing, Text
from bullpen.view.commands import COMMANDS, WHILE_IT_WORKS, Typed, help_lines, run_command, typed_choice
from bullpen.view.decisions import Decision, with_key
from bullpen.view.state import conversation_view
from bullpen.view.status_lines import queue_lines, team_lines
from bullpen.view.typed_answers import is_about_doing, read_typed

if TYPE_CHECKING:
    from bullpen.view.explanation import Explanation

MOST_DIFF_LINES = 300
"""That /diff writes between the lines of a chat."""
MOST_LISTED = 100
"""Lines of /changes, the latest."""
HELP = """
Everything else is said to the team. [NEXT: name] says who answers; without it the lead does, or who spoke last.
Tab completes names and commands. A line that ends in \\ continues in the next. Arrow up: what you sent before.
Ctrl-C cancels running turns; twice, it leaves. Ctrl-D leaves."""


class ShownCommands:
    """Shows in one chat what commands ask for."""

    def __init__(self, conversation: Conversation, show: Show, leave: Callable[[], None], db: Path | None) -> None:
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
        view = conversation_view(self._conversation)
        self._show.text("\n".join(team_lines(view, self._conversation.team.first_to_answer)))

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

    async def _help(self, _: Nothing) -> None:
        self._show.table(help_lines(COMMANDS.values()))
        self._show.text("\nAn agent that is working:")
        self._show.table(WHILE_IT_WORKS)
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
    "help": ShownCommands._help,
    "quit": ShownCommands._quit,
}


def _explanation(database: Database, conversation_id: str, reference: str) -> "Explanation":
    from bullpen.view.explanation import explain
    from bullpen.view.turn_lookup import find_turn

    return explain(database, conversation_id, find_turn(database, conversation_id, reference).id)


YES = ("y", "yes")
NO = ("", "n", "no")


class ChatLines:
    """Messages, commands, and the one key that says yes to a hand-over, or yes or no to an agent that asks."""

    def __init__(
        self,
        conversation: Conversation,
        show: Show,
        sender: str | None,
        db: Path | None = None,
        addressed: Callable[[str], str] = lambda text: text,
    ) -> None:
        """Do what lines say; `addressed` may add to a message whom it asks."""
        self.wants_to_leave = False
        self.unsent = ""
        """The last message, if it could not be sent."""
        self._conversation = conversation
        self._show = show
        self._sender = sender
        self._addressed = addressed
        self._asked_to_leave = False
        self._shown = ShownCommands(conversation, show, self.leave, db)

    async def take(self, text: str, begun: Sequence[Decision] = ()) -> bool:
        """Do what a line says. Return whether that worked; if not, the person was told why.

        An answer is about what was asked when the line was begun; without that, about what is written now.
        """
        self.unsent = ""
        word = text.strip().lower()
        if self._asked_to_leave:
            self._asked_to_leave = False
            self.wants_to_leave = word in YES
            if self.wants_to_leave or word in NO:
                return True
        try:
            await self._do(text, word, begun)
        except BullpenError as error:
            self._show.note(f"! {error}", "red")
            return False
        except OSError as error:
            self._show.note(f"! {error.strerror or error}", "red")
            return False
        return True

    async def _do(self, text: str, word: str, begun: Sequence[Decision]) -> None:
        seen = begun or self._show.questions()
        if word and word in (*YES, *NO) and any(map(is_about_doing, begun)) and not self._is_open(begun):
            text = "/yes" if word in YES else "/no"
        elif word in ("", *YES):
            text = self._yes(word) or text
        elif word in NO and any(map(is_about_doing, conversation_view(self._conversation).decisions)):
            text = "/no"
        chosen = with_key(word, seen) if word.isdecimal() else None
        typed = typed_choice(chosen) if chosen else read_typed(text, self._conversation.team, seen)
        if typed is None:
            await self._say(text)
        elif typed.command.run is None:
            await self._shown.run(typed)
        elif told := await run_command(typed, self._conversation, self._sender):
            self._show.note(told)

    def _is_open(self, begun: Sequence[Decision]) -> bool:
        now = {decision.key for decision in conversation_view(self._conversation).decisions}
        return any(decision.key in now for decision in begun)

    async def _say(self, text: str) -> None:
        if text.strip():
            self.unsent = text
            await self._conversation.say(self._addressed(text), sender=self._sender)
            self.unsent = ""

    def _yes(self, word: str) -> str:
        """Return the command that says yes, if a yes is what is waited for; refuse if it could mean another."""
        decisions = conversation_view(self._conversation).decisions
        if not any(decision.kind in ("missed", "allow") or is_about_doing(decision) for decision in decisions):
            return ""
        if len(decisions) == 1:
            yes = decisions[0].choices[0]
            return yes.typed if word or not yes.is_risky else ""
        if word:
            answers = " or ".join(decision.choices[0].typed for decision in decisions if decision.choices)
            raise BullpenError(f"{counted(len(decisions), 'decision')} wait for you. Which one do you mean: {answers}?")
        return ""

    def leave(self) -> None:
        """Leave if no turn is running; else ask first."""
        names = [running.turn.member for running in self._conversation.running.values()]
        if not names:
            self.wants_to_leave = True
            return
        self._asked_to_leave = True
        verb = "is" if len(names) == 1 else "are"
        self._show.note(f"{', '.join(names)} {verb} working. Leave, and cancel that? [y/N]", "yellow")
