"""A message in the parts that a door shows: what an agent said, and what it only announced before it used a tool."""

from collections.abc import Iterator
from itertools import groupby, pairwise

import msgspec
from msgspec import Struct

from bullpen.conversation.reply_markers import TEXTS_AT
from bullpen.markers.stripping import strip_all_markers, text_for_people
from bullpen.messages import ConversationMessage
from bullpen.text.patterns import pattern

LONGEST_REMARK = 200
"""Characters."""
MOST_PARTS = 100
"""A door lays out each by itself, and an agent may use a hundred thousand tools. With more, nothing is folded."""

_MARKUP = pattern(r"[^\S ]|[\[\]［］<>|#*?？]|://|``")
"""One line, without a list, a heading, a quote, a table, a link, a marker, code in a block or a question."""
_SAYS_MORE = pattern(
    r"(?i)\b(?:no|not|never|cannot|without|but|because|instead|since|however|unless|fail\w*|error\w*|wrong|broken"
    r"|you\w*|please|need|must|stop|wait|leave|skip)\b|n['’]t\b|[不没沒但因却你您请需停等]"
)
"""A reason, a refusal, a finding, or a word to somebody: more than what is done next."""
_ANNOUNCES = pattern(
    r"(?i)(?:(?:ok|okay|alright|good|great|perfect|now|next|first|then|so|and|also|finally)\b[,:]?\s+)*"
    r"(?:I['’]ll|I will|let me(?! know)|let['’]s|let us"
    r"|I(?:['’]m| am) (?:now )?(?:going to|checking|looking|reading|running|opening|searching|starting|updating))\b"
    r"|(?:好的?[，,]?|现在|接下来|首先|然后)*(?:我(?:先|来|会|将|要|再|去|现在|接下来)|让我|我们(?:先|来))"
)
_INTERJECTION = pattern(r"(?i)(?:ok|okay|alright|good|great|perfect|好的?)[.!。！]")
_BETWEEN_SENTENCES = pattern(r"(?<=[.!…])\s+|(?<=[。！])\s*(?=\S)")


class ReplyPart(Struct, frozen=True, kw_only=True):
    """A part of a message. Only one of the two is there."""

    text: str = ""
    """To be shown whole, as Markdown, without the markers that routed it."""
    remarks: tuple[str, ...] = ()
    """What an agent only announced, tool by tool, each in a line."""

    @property
    def heading(self) -> str:
        """The line into which several remarks are folded."""
        return f"{len(self.remarks)} remarks while it worked: {self.remarks[0]}"


def reply_parts(message: ConversationMessage) -> tuple[ReplyPart, ...]:
    """Return a message as doors show it. One that is not known to have several texts is one part."""
    whole = text_for_people(message.content)
    parts = tuple(_parts(_texts(message)))
    # A marker can reach over several texts, and code that does not end hides what follows it.
    is_same = " ".join(" ".join((*part.remarks, part.text)) for part in parts).split() == whole.split()
    return parts if is_same and len(parts) <= MOST_PARTS else (ReplyPart(text=whole),)


def only_narrates(text: str) -> bool:
    """Return whether a text that came before a tool says clearly no more than what the agent does next."""
    line = text.strip()
    if not line or len(line) > LONGEST_REMARK or _MARKUP.search(line) or _SAYS_MORE.search(line):
        return False
    sentences = [one for one in _BETWEEN_SENTENCES.split(line) if not _INTERJECTION.fullmatch(one)]
    return bool(sentences) and all(map(_ANNOUNCES.match, sentences))


def _texts(message: ConversationMessage) -> list[str]:
    content = message.content
    try:
        starts = msgspec.convert((message.extra or {}).get(TEXTS_AT, ()), tuple[int, ...])
    except msgspec.ValidationError:
        # A field of some other system that has the same name.
        starts = ()
    places = (0, *starts, len(content))
    if any(start > end for start, end in pairwise(places)):
        return [content]
    return [content[start:end] for start, end in pairwise(places)]


def _parts(texts: list[str]) -> Iterator[ReplyPart]:
    """Yield runs of texts of one kind. A tool followed each of them but the last, which is always shown whole."""
    *before, last = texts
    kinds = [*((only_narrates(text), text) for text in before), (False, last)]
    for is_narration, run in groupby(kinds, key=lambda kind: kind[0]):
        texts_in_run = (text for _, text in run)
        if is_narration:
            yield ReplyPart(remarks=tuple(map(str.strip, texts_in_run)))
        elif text := strip_all_markers("".join(texts_in_run)):
            yield ReplyPart(text=text)
