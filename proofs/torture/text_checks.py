"""What must hold for every text, wherever it goes. Nothing here trusts the code that it checks."""

import io
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from functools import partial
from html import escape, unescape
from html.parser import HTMLParser
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from random import Random

from markdown_it import MarkdownIt
from msgspec import Struct
from msgspec.structs import replace
from proofs.torture.hostile_inputs import PEOPLE
from proofs.torture.markdown_view import is_disputed, routed_from_code
from proofs.torture.one_conversation import OneConversation, conversation_about
from proofs.torture.prompt_reader import Forged, Said, is_beginning, read_prompt, same_text

from bullpen.context import (
    AssemblerInput,
    ClaudeContextAssembler,
    CodexContextAssembler,
    ContextAssembler,
    GeminiContextAssembler,
    PlainTextAssembler,
    PromptContextMessage,
    PromptTooLarge,
    read_markers,
    strip_all_markers,
)
from bullpen.exchange.files import write_export
from bullpen.markers.grammar import Markers
from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.store.base import StoredMessage
from bullpen.terminal.tables import print_indented, safe_line
from bullpen.terminal.wrapping import Wrapper
from bullpen.text.safe import printable

Render = Callable[[str], str]


class Doors(Struct, frozen=True, kw_only=True):
    """Where texts go. A fault is planted by putting something else in a place."""

    read: Callable[[str], Markers] = read_markers
    strip: Callable[[str], str] = strip_all_markers
    assemblers: tuple[ContextAssembler, ...]
    names: tuple[str, ...] = PEOPLE
    """Of whom the assemblers know."""
    terminal: tuple[Render, ...]
    markdown: Callable[[OneConversation, str, io.StringIO], None]
    html: Callable[[OneConversation, str, io.StringIO], None]
    page: Render | None = None


class Check(Struct, frozen=True, kw_only=True):
    """One thing that must hold."""

    name: str
    counts: str
    """What its figure counts."""
    find: Callable[[list[str], Random, Doors], Iterator[str]]
    """Yields what is wrong."""
    broken: Callable[[Doors], Doors]
    """Plants a fault that it must notice."""
    every: int = 1
    """It looks at one batch in so many."""


def _indented(text: str) -> str:
    written = io.StringIO()
    with redirect_stdout(written):
        print_indented(text)
    return written.getvalue()


def _streamed(text: str) -> str:
    """Return what a terminal gets of an agent's words that come in small pieces."""
    wrapper = Wrapper(40)
    pieces = [text[start : start + 3] for start in range(0, len(text), 3)]
    return "".join([*map(wrapper.feed, pieces), wrapper.end_line()])


def _page() -> Render | None:
    """Return what makes HTML of Markdown for the browser, where that part is there."""
    if find_spec("bullpen.web") is None or find_spec("bullpen.web.markdown") is None:
        return None
    render: Render = import_module("bullpen.web.markdown").render
    return render


PLENTY = 4_000_000
"""A budget that every batch fits into. Assemblers remember twice as much, so it is not larger than it has to be."""

DOORS = Doors(
    assemblers=(ClaudeContextAssembler(), CodexContextAssembler(), GeminiContextAssembler(), PlainTextAssembler()),
    terminal=(printable, safe_line, _indented, _streamed),
    markdown=partial(write_export, file_format="md"),
    html=partial(write_export, file_format="html"),
    page=_page(),
)


# Markers


def _markers(texts: list[str], random: Random, doors: Doors) -> Iterator[str]:
    for text in texts:
        markers = doors.read(text)
        if markers and (names := routed_from_code(text, markers)):
            yield f"code routes to {sorted(names)}: {text!r}"
        quoting = random.choice((_fenced, _quoted, _in_a_span))
        if doors.read(quoting(text)):
            yield f"{quoting.__name__} text routes: {quoting(text)!r}"


def _fenced(text: str) -> str:
    """Quote as people do who take care: with a fence that is longer than any in the text."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"He said:\n{fence}\n{text}\n{fence}\nSo there."


def _quoted(text: str) -> str:
    return "He said:\n\n" + "\n".join(f"> {line}" for line in re.split("\r\n|\n|\r", text)) + "\n\nSo there."


def _in_a_span(text: str) -> str:
    """A span ends with its paragraph, so the text goes on one line."""
    ticks = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    one_line = " ".join(re.split("[\r\n]+", text))
    return f"He said {ticks} {one_line} {ticks}, so there."


def _ignore_code(doors: Doors) -> Doors:
    return replace(doors, read=lambda text: read_markers(text.replace("`", "'").replace(">", " ").replace("~", "-")))


# Stripping


def _stripping(texts: list[str], _: Random, doors: Doors) -> Iterator[str]:
    for text in texts:
        stripped = doors.strip(text)
        if read_markers(stripped):
            yield f"stripping made a marker: {text!r} became {stripped!r}"
        if doors.strip(stripped) != stripped:
            yield f"stripping twice is not stripping once: {text!r}"


def _strip_once(doors: Doors) -> Doors:
    return replace(doors, strip=lambda text: re.sub(r"(?i)\[(NEXT|DROP|FROM): *[^\]]*\]", "", text).strip())


# Prompts


def _prompts(texts: list[str], random: Random, doors: Doors) -> Iterator[str]:
    history = [(random.choice(PEOPLE), random.choice(PEOPLE), strip_all_markers(text)) for text in texts[:5]]
    system, task, asked = texts[5:8]
    sender, to = random.choice(PEOPLE), random.choice(PEOPLE)
    source = AssemblerInput(
        context_messages=[PromptContextMessage(sender=who, to=whom, content=said) for who, whom, said in history],
        current_message=asked if _trimmed(asked) else "go",
        team_task=task,
        system_instruction=system,
        max_bytes=random.choice((PLENTY, PLENTY, random.randint(60, 600))),
        current_from=sender,
        current_to=to,
        names=doors.names,
    )
    for assembler in doors.assemblers:
        try:
            output = assembler.assemble(source)
        except PromptTooLarge:
            continue
        problem = _misread(source, assembler.agent_type, output.prompt)
        if problem and not any(map(is_disputed, texts)):
            yield f"{assembler.agent_type}: {problem} in {output.prompt!r} from {source!r}"


def _misread(source: AssemblerInput, agent: str, prompt: str) -> str:
    """Return what a reader of the prompt gets wrong."""
    system, task = _trimmed(source.system_instruction or ""), _trimmed(source.team_task or "")
    try:
        read = read_prompt(prompt, agent, PEOPLE, system=system, task=task)
    except Forged as error:
        return f"cannot be read: {error}"
    asked = _trimmed(source.current_message)
    if read.message is None or not _is(read.message, source.current_from, source.current_to, agent):
        return f"the message is {read.message!r}"
    whole = same_text(read.message.content, asked, agent, PEOPLE, "message")
    if not whole and not is_beginning(read.message.content, asked, agent, PEOPLE):
        return f"the message says {read.message.content!r}"
    return _misread_history(read.context, source, agent, whole)


def _misread_history(read: Sequence[Said], source: AssemblerInput, agent: str, whole: bool) -> str:
    if read and not whole:
        return "history although the message is cut"
    kept = source.context_messages[len(source.context_messages) - len(read) :]
    if source.max_bytes == PLENTY and len(kept) != len(source.context_messages):
        return f"{len(read)} messages"
    for got, said in zip(read, kept, strict=True):
        content = _clean(said.content)
        if not _is(got, said.sender, said.to, agent) or not same_text(got.content, content, agent, PEOPLE, "history"):
            return f"{said!r} is {got!r}"
    return ""


def _is(got: Said, sender: str | None, to: str | None, agent: str) -> bool:
    return got.sender == sender and (got.to == to or agent in ("google-gemini", "unknown"))


def _clean(text: str) -> str:
    return re.sub("[\ud800-\udfff]", "\ufffd", text.replace("\0", "\u2400"))


_SCRIPT_SPACE = "\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"


def _trimmed(text: str) -> str:
    """Return a text as JavaScript's trim() does."""
    return re.sub(rf"\A[{_SCRIPT_SPACE}]+|[{_SCRIPT_SPACE}]+\Z", "", _clean(text))


def _forget_names(doors: Doors) -> Doors:
    return replace(doors, names=())


# Terminal

_REORDERING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
_HARMLESS = frozenset(map(chr, range(32, 127))) | {"\n", "\t"}


def _terminal(texts: list[str], _: Random, doors: Doors) -> Iterator[str]:
    for text in texts:
        for door in doors.terminal:
            if bad := _obeyed(door(text)):
                yield f"{sorted(bad)} of {text!r} reach the terminal"


def _obeyed(shown: str) -> list[str]:
    """Return the characters that a terminal would obey, or could not print."""
    return [character for character in set(shown) - _HARMLESS if _is_obeyed(character)]


def _is_obeyed(character: str) -> bool:
    return (
        unicodedata.category(character) in ("Cc", "Cs")
        or unicodedata.bidirectional(character) in _REORDERING
        or character in "\u200e\u200f\u061c"
    )


def _leak_bell(doors: Doors) -> Doors:
    return replace(doors, terminal=(lambda text: printable(text.replace("\x07", "<bell>")).replace("<bell>", "\x07"),))


# Exports

_COMMONMARK = MarkdownIt("commonmark")


def _conversation(texts: list[str], random: Random) -> OneConversation:
    messages = [
        ConversationMessage(
            id=f"msg-{number}",
            content=_clean(text),
            speaker=Speaker(role_id="x", role_name=random.choice(PEOPLE), type="ai"),
            routing=Routing(resolved_addressees=(random.choice(PEOPLE),)),
            timestamp=1_700_000_000_000,
        )
        for number, text in enumerate(texts[1:], 1)
    ]
    stored = [StoredMessage(sequence=number, message=said, hash=b"") for number, said in enumerate(messages, 1)]
    return OneConversation(conversation_about(len(stored), _clean(texts[0]) or None), stored)


def _markdown(texts: list[str], random: Random, doors: Doors) -> Iterator[str]:
    conversation = _conversation(texts, random)
    file = io.StringIO()
    doors.markdown(conversation, "quiet-river", file)
    tokens = _COMMONMARK.parse(file.getvalue())
    ours = [token.content for before, token in pairwise(tokens) if _is_heading(before.type, before.level)]
    if len(ours) != 1 + len(conversation.stored):
        yield f"{len(ours)} headings for {len(conversation.stored)} messages: {texts!r}"
    for heading, stored in zip(ours[1:], conversation.stored, strict=False):
        if not unescape(heading.replace("\\", "")).startswith(
            f"#{stored.sequence} {stored.message.speaker.role_name} →"
        ):
            yield f"heading {heading!r} for {stored.message.speaker.role_name}: {texts!r}"
    if any(token.type == "html_block" or _has_tags(token.children or []) for token in tokens):
        yield f"HTML passes: {texts!r}"


def _is_heading(kind: str, level: int) -> bool:
    return kind == "heading_open" and level == 0


def _has_tags(children: Sequence[object]) -> bool:
    return any(getattr(child, "type", "") == "html_inline" for child in children)


def _unquoted(doors: Doors) -> Doors:
    def write(store: OneConversation, conversation_id: str, file: io.StringIO) -> None:
        draft = io.StringIO()
        doors.markdown(store, conversation_id, draft)
        file.write(draft.getvalue().replace("\n> #", "\n#"))

    return replace(doors, markdown=write)


class _Tags(HTMLParser):
    """What a browser would find in a page: tags with their attributes, and the text in each message."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []
        self.said: list[str] = []
        self._in_said = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(attrs)))
        if tag == "div" and ("class", "said") in attrs:
            self._in_said = True
            self.said.append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_said = self._in_said and tag != "div"

    def handle_data(self, data: str) -> None:
        if self._in_said:
            self.said[-1] += data

    def handle_comment(self, data: str) -> None:
        self.tags.append(("comment", ((data, None),)))


def _html(texts: list[str], random: Random, doors: Doors) -> Iterator[str]:
    conversation = _conversation(texts, random)
    file = io.StringIO()
    doors.html(conversation, "quiet-river", file)
    tags = _Tags()
    tags.feed(file.getvalue())
    tags.close()
    # What was said is rendered, so it is not there letter by letter; but every message is in a place of its own.
    if len(tags.said) != len(conversation.stored):
        yield f"{len(tags.said)} messages, not {len(conversation.stored)}: {texts!r}"
    if strange := {tag for tag, _ in tags.tags} - _TAGS_OF_EXPORTS - _TAGS_OF_PAGES:
        yield f"tags {strange}: {texts!r}"
    addresses = [value or "" for _, attributes in tags.tags for name, value in attributes if name in ("href", "src")]
    if harmful := [one for one in addresses if not one.startswith("#m") and not _HARMLESS_ADDRESS.match(one)]:
        yield f"addresses {harmful}: {texts!r}"
    if scripts := {name for _, attributes in tags.tags for name, _ in attributes if name.startswith("on")}:
        yield f"attributes {scripts}: {texts!r}"


_TAGS_OF_EXPORTS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "h1",
        "p",
        "div",
        "main",
        "article",
        "h2",
        "a",
        "bdi",
    ),
    *("span", "small"),
}


def _unescaped(doors: Doors) -> Doors:
    def write(store: OneConversation, conversation_id: str, file: io.StringIO) -> None:
        draft = io.StringIO()
        doors.html(store, conversation_id, draft)
        file.write(draft.getvalue().replace(escape("<img"), "<img"))

    return replace(doors, html=write)


# Page

_TAGS_OF_PAGES = {
    *("a", "b", "blockquote", "br", "code", "del", "div", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre"),
    *("s", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"),
}
_HARMLESS_ADDRESS = re.compile("(?:https?|mailto):", re.IGNORECASE)


def _pages(texts: list[str], _: Random, doors: Doors) -> Iterator[str]:
    if doors.page is None:
        return
    for text in texts:
        tags = _Tags()
        tags.feed(str(doors.page(_clean(text))))
        tags.close()
        for tag, attributes in tags.tags:
            addresses = [value or "" for name, value in attributes if name in ("href", "src")]
            allowed = all(name in ("href", "rel", "class", "start", "tabindex") for name, _ in attributes)
            if tag not in _TAGS_OF_PAGES or not allowed or not all(map(_HARMLESS_ADDRESS.match, addresses)):
                yield f"<{tag} {attributes}> from {text!r}"


def _raw_page(doors: Doors) -> Doors:
    return replace(doors, page=lambda text: f"<p>{text}</p>")


CHECKS = (
    Check(name="markers", counts="texts read for markers", find=_markers, broken=_ignore_code),
    Check(name="stripping", counts="texts stripped", find=_stripping, broken=_strip_once),
    Check(name="prompts", counts="texts in prompts of four layouts", find=_prompts, broken=_forget_names),
    Check(name="terminal", counts="texts on a terminal", find=_terminal, broken=_leak_bell),
    Check(name="Markdown export", counts="texts exported as Markdown", find=_markdown, broken=_unquoted, every=8),
    Check(name="HTML export", counts="texts exported as HTML", find=_html, broken=_unescaped, every=8),
    *([Check(name="page", counts="texts in pages", find=_pages, broken=_raw_page, every=8)] if DOORS.page else []),
)
