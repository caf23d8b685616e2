"""What can be typed in a chat beside messages: /next, /queue and the others."""

import contextlib
import io
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path

from msgspec import Struct

from bullpen.cli.plain.explanation import print_explanation
from bullpen.cli.plain.prompt import prompt_lines
from bullpen.cli.plain.transcript import Show
from bullpen.conversation.conversation import Conversation
from bullpen.errors import BullpenError
from bullpen.exchange.files import export_to
from bullpen.store.base import Store
from bullpen.text.names import nearest
from bullpen.view.explanation import Explanation, explain
from bullpen.view.turn_lookup import LAST, find_turn


class Commands:
    """The commands of one chat. Every one takes what stands behind its name."""

    def __init__(self, conversation: Conversation, show: Show, leave: Callable[[], None]) -> None:
        self._conversation = conversation
        self._show = show
        self._leave = leave

    async def run(self, text: str) -> None:
        """Do what a line that begins with a slash says."""
        name, _, argument = text[1:].strip().partition(" ")
        command = COMMANDS.get(name.lower())
        if command is None:
            near = nearest(name.lower(), COMMANDS) if name else ()
            meant = f" Did you mean /{' or /'.join(near)}?" if near else ""
            raise BullpenError(f"There is no command /{name}.{meant} /help lists them; begin with a space to send it.")
        await command.act(self, argument.strip())

    async def next(self, names: str) -> None:
        """Ask members to answer the last message."""
        if not names:
            raise BullpenError("/next whom? For example: /next sarah, or /next sarah & max")
        await self._conversation.ask(names)

    async def queue(self, _: str) -> None:
        """Write who is at work, who waits, and what needs a decision."""
        conversation = self._conversation
        held = {turn.id for turn in conversation.held}
        lines = [f"turn {one.turn.id}  {one.turn.member}: {one.doing}" for one in conversation.running.values()]
        lines += [
            f"turn {turn.id}  {turn.member}: {'on hold' if turn.id in held else 'waits'}"
            for turn in conversation.waiting
        ]
        lines += [f"turn {turn.id}  {turn.member}: /retry, /skip or /hand?" for turn in conversation.undecided]
        self._show.text("\n".join(lines) or "Nobody is at work, and nobody waits.")

    async def drop(self, argument: str) -> None:
        """Take turns out of the queue: all, a member's, or some by their numbers."""
        words = argument.replace(",", " ").split()
        if words and all(word.isdecimal() for word in words):
            dropped = await self._conversation.drop(turn_ids=words)
        else:
            dropped = await self._conversation.drop(member=argument or None)
        if not dropped:
            self._show.note("Nothing of that waits.")

    async def cancel(self, turn_id: str) -> None:
        """Stop what runs."""
        await self._conversation.cancel(turn_id or None)

    async def retry(self, turn_id: str) -> None:
        """Do a turn again."""
        await self._conversation.retry(turn_id or None)

    async def skip(self, turn_id: str) -> None:
        """Go on without a turn."""
        await self._conversation.skip(turn_id or None)

    async def hand(self, argument: str) -> None:
        """Let another member answer in place of one that did not."""
        words = argument.split()
        turn_id = words.pop() if len(words) > 1 and words[-1].isdecimal() else None
        if not words:
            raise BullpenError("/hand to whom? For example: /hand max")
        await self._conversation.hand_over(" ".join(words), turn_id)

    async def go(self, _: str) -> None:
        """Lift a pause."""
        await self._conversation.continue_turns()

    async def task(self, text: str) -> None:
        """Show, set or take away what the team works on."""
        if text:
            await self._conversation.set_task(None if text == "-" else text)
        else:
            task = self._conversation.team_task
            self._show.text(
                f"The team's task: {task}" if task else "The team has no task. Set one with /task and a text."
            )

    async def who(self, _: str) -> None:
        """Write who is in the team."""
        team = self._conversation.team
        self._show.text(
            "\n".join(
                f"{member.name}: "
                + (f"{member.agent or member.command[0]}" if member.type == "ai" else "a person")
                + (f", {member.role}" if member.role else "")
                + (" (leads)" if member.name == team.lead else "")
                for member in team.members
            )
        )

    async def prompt(self, member: str) -> None:
        """Write what an agent would be given now."""
        if not member:
            raise BullpenError("/prompt for whom? For example: /prompt sarah")
        output = await self._conversation.preview(member)
        self._show.text("\n".join(prompt_lines(member, output)))

    async def explain(self, turn: str) -> None:
        """Write what an agent saw in a turn."""
        explanation = await self._conversation.read(_explanation, turn or LAST)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            print_explanation(explanation)
        self._show.text(printed.getvalue())

    async def export(self, argument: str) -> None:
        """Write the conversation to a file."""
        path = Path(argument or f"{self._conversation.id}.md").expanduser()
        await self._conversation.read(export_to, path)
        self._show.note(f"Written to {shlex.quote(str(path))}.")

    async def help(self, _: str) -> None:
        """Write what can be typed."""
        lines = [f"/{name:<8}{command.argument:<12}{command.purpose}" for name, command in COMMANDS.items()]
        self._show.text("\n".join([*lines, *HELP]))

    async def quit(self, _: str) -> None:
        """Leave."""
        self._leave()


class Command(Struct, frozen=True):
    """One command: what it takes, what for, and how."""

    argument: str
    purpose: str
    act: Callable[[Commands, str], Awaitable[None]]


COMMANDS = {
    "next": Command("NAMES", "ask members to answer the last message: sarah, or sarah & max", Commands.next),
    "queue": Command("", "who is at work, who waits, what needs a decision", Commands.queue),
    "drop": Command("[NAME]", "take waiting turns away: all, a member's, or those with numbers", Commands.drop),
    "cancel": Command("[TURN]", "stop what runs; the queue waits for /go or /drop", Commands.cancel),
    "retry": Command("[TURN]", "do a turn again that ended without a reply", Commands.retry),
    "skip": Command("[TURN]", "go on without it", Commands.skip),
    "hand": Command("NAME [TURN]", "let another one answer in its place", Commands.hand),
    "go": Command("", "go on after a pause", Commands.go),
    "task": Command("[TEXT]", "show or set what the team works on; - takes it away", Commands.task),
    "who": Command("", "who is in the team", Commands.who),
    "prompt": Command("NAME", "what an agent would be given now, word for word", Commands.prompt),
    "explain": Command("[TURN]", "what an agent saw, and what was left out (default: the last turn)", Commands.explain),
    "export": Command("[FILE]", "write the conversation to a file: .md, .html or .json", Commands.export),
    "help": Command("", "this", Commands.help),
    "quit": Command("", "leave; everything is stored", Commands.quit),
}

HELP = (
    "",
    "Everything else is said to the team. [NEXT: name] says who answers; without it the lead does, or who spoke last.",
    "Tab completes names and commands. A line that ends in \\ goes on in the next. Arrow up: what you sent before.",
    "Ctrl-C cancels what runs; twice, it leaves. Ctrl-D leaves.",
)


def _explanation(store: Store, conversation_id: str, reference: str) -> Explanation:
    return explain(store, conversation_id, find_turn(store, conversation_id, reference).id)
