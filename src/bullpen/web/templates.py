"""Templates and their filters. All output is escaped and visible."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from bullpen.exchange.visible import visible
from bullpen.markers.stripping import text_for_people
from bullpen.text import numbers
from bullpen.view.activity import ACTIVITIES
from bullpen.view.addressees import WHO_ANSWERS
from bullpen.view.attention import attention
from bullpen.view.chips import chips
from bullpen.view.messages import NOTE, is_note, kind_words, rebuilt_words
from bullpen.view.notices import Words, notice_of, words_with_diffs
from bullpen.view.reply_parts import reply_parts
from bullpen.view.status_lines import why_last_waits
from bullpen.web.access import Need, may
from bullpen.web.assets import address
from bullpen.web.identity import visitor
from bullpen.web.markdown import code, plain, render, words

FOLDER = Path(__file__).parent / "templates"


def rendered(template: str, **values: Any) -> Markup:
    """Return a page or a part of one."""
    return Markup(_ENVIRONMENT.get_template(template).render(**values))  # noqa: S704 (everything in it is escaped)


def clock(milliseconds: int | None) -> Markup:
    """Return a time, which the page shows in the reader's own time zone."""
    try:
        moment = datetime.fromtimestamp((milliseconds or 0) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return Markup()
    return Markup('<time datetime="{}">{}</time>').format(
        f"{moment:%Y-%m-%dT%H:%M:%SZ}", f"{moment:%Y-%m-%d %H:%M} UTC"
    )


def said(text: str) -> Markup:
    """Return a message without the markers that routed it; the addressees are above it."""
    return render(text_for_people(text))


def initials(name: str) -> str:
    """Return one or two letters for a member."""
    words = [word for word in name.replace("-", " ").replace("_", " ").split() if word]
    return "".join(word[0] for word in words[:2]).upper() or "?"


def exact(text: str) -> Markup:
    """Return a text that a person edits, with what cannot be seen in it: it is stored as it comes back."""
    return escape(text)


def linked(text: str, conversation_id: str) -> Markup:
    """Return what bullpen says, in which the diffs that it names can be opened."""
    return Markup().join(diff_link(part, conversation_id) for part in words_with_diffs(text))


def diff_link(part: Words, conversation_id: str) -> Markup:
    """Return a part of what bullpen says; a diff is a link to it."""
    text = escape(visible(part.text))
    address = f"/c/{conversation_id}/changes?turns={part.turns}"
    return Markup('<a href="{}">{}</a>').format(address, text) if part.turns else text


def file_name(path: str) -> str:
    """Return the last part of a path."""
    return Path(path).name or path


def moved_up(turns: list[str], index: int) -> list[str]:
    """Return the order of a queue with one turn moved up by one place."""
    return [*turns[: index - 1], turns[index], turns[index - 1], *turns[index + 1 :]]


def visitor_may(need: Need) -> bool:
    """Return whether who is shown the page may do something. Parts that are rendered for everybody do not ask."""
    return may(visitor(), need)


def _shown(value: object) -> object:
    return value if isinstance(value, Markup) else visible(str(value))


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    spellings = (numbers.counted, numbers.duration, numbers.money, numbers.short_number, numbers.size, numbers.tokens)
    shown = (clock, said, initials, exact, linked, diff_link, file_name, moved_up, code, plain, render, words)
    of_messages = (is_note, rebuilt_words, kind_words, reply_parts, chips, notice_of, words_with_diffs)
    environment.globals.update(activities=ACTIVITIES, address=address, attention=attention, may=visitor_may)
    environment.globals.update(
        who_answers=WHO_ANSWERS, note=NOTE, used=numbers.used, visitor=visitor, why_last_waits=why_last_waits
    )
    environment.filters.update({function.__name__: function for function in (*spellings, *shown, *of_messages)})
    return environment


_ENVIRONMENT = _environment()
