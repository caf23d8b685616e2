"""Commands that show something: where the browser shows it, and what a program gets instead."""

from collections.abc import Callable
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from bullpen.conversation.conversation import Conversation
from bullpen.exchange.files import FORMATS
from bullpen.view.best_of import results_of
from bullpen.view.checks import find_checks
from bullpen.view.commands import Typed
from bullpen.view.help import all_sections, help_sections, section_lines
from bullpen.view.status_lines import queue_lines, who_lines
from bullpen.view.summaries import summary_lines
from bullpen.view.turn_lookup import LAST, find_turn
from bullpen.web.live import LiveConversation
from bullpen.web.responses import sent_to, shown_dialog

Lines = Callable[[LiveConversation, Typed], list[str]]
Address = Callable[[str, Typed], str]


async def shown_at(request: Request, opened: LiveConversation, typed: Typed) -> Response:
    """Show the result of a command in a dialog, or on a page of its own."""
    if lines := lines_of(opened, typed):
        return shown_dialog(typed.command.name, lines)
    return sent_to(request, await address_of(opened.conversation, typed))


def lines_of(opened: LiveConversation, typed: Typed) -> list[str]:
    """Return the lines that a command shows; none if it has a page of its own."""
    show = LINES.get(typed.command.name)
    return show(opened, typed) if show else []


async def address_of(conversation: Conversation, typed: Typed) -> str:
    """Return the page that shows it; raise what is wrong with what it should show."""
    if typed.command.name == "prompt":
        conversation.agent(typed.given.member)
    elif typed.command.name == "explain":
        await conversation.read(find_turn, typed.given.text or LAST)
    elif typed.command.name == "checks":
        # They stand below the message of their turn.
        place = (await conversation.read(find_checks, typed.given.text))[0].after_message
        base = ADDRESSES["checks"](f"/c/{conversation.id}", typed)
        return f"{base}?at={place}#m{place}"
    elif typed.command.name == "compare":
        await conversation.read(results_of, typed.given.text)
    return ADDRESSES[typed.command.name](f"/c/{conversation.id}", typed)


def _export(base: str, typed: Typed) -> str:
    ending = typed.given.text.rpartition(".")[2].lower()
    return f"{base}/export/{ending if ending in FORMATS else FORMATS[0]}"


LINES: dict[str, Lines] = {
    "help": lambda opened, typed: section_lines((all_sections if typed.given.text else help_sections)(opened.view())),
    "queue": lambda opened, _: queue_lines(opened.view()),
    "who": lambda opened, _: who_lines(opened.conversation),
    "summaries": lambda opened, _: summary_lines(opened.conversation.progress),
}
ADDRESSES: dict[str, Address] = {
    "prompt": lambda base, typed: f"{base}/prompt/next-{quote(typed.given.member, safe='')}",
    "explain": lambda base, typed: f"{base}/prompt/turn-{quote(typed.given.text or LAST, safe='')}",
    "diff": lambda base, typed: (
        f"{base}/changes?turns={quote(typed.given.text)}" if typed.given.text else f"{base}/changes"
    ),
    "changes": lambda base, _: f"{base}/changes",
    "checks": lambda base, _: base,
    "compare": lambda base, typed: (
        f"{base}/results?turn={quote(typed.given.text)}" if typed.given.text else f"{base}/results"
    ),
    "search": lambda _, typed: f"/?q={quote(typed.given.text)}",
    "open": lambda _, typed: f"/?q={quote(typed.given.text)}" if typed.given.text else "/",
    "new": lambda _base, _typed: "/",
    "export": _export,
    "quit": lambda _base, _typed: "/",
}
