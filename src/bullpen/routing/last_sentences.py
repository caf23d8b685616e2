"""How a reply ends: its last sentences, without code and quotes; or a marker in code or escaped.

Agents hand over at the end of a reply. Only the end is searched, which also bounds the time it takes.
"""

import re

from msgspec import Struct

from bullpen.markers.code import HIDDEN
from bullpen.markers.grammar import MARKER
from bullpen.routing.hand_over_phrases import STAND_IN
from bullpen.text.clean import WHITE_SPACE
from bullpen.text.patterns import pattern

# In characters.
LONGEST_ENDING = 2_000
LONGEST_SENTENCE = 500

_MARKER = pattern(f"(?ai){MARKER}")
# An apostrophe within a word does not end a quote.
_QUOTED = pattern(
    r"“[^”]*+(?:”|\Z)|\A[^“”]*+”|「[^」]*+(?:」|\Z)|『[^』]*+(?:』|\Z)|‘(?!\s)(?:[^\n‘’]|(?<=\w)’(?=\w))*+’(?!\w)"
    r"""|(?<!\w)"(?!\s)[^"]*+(?:"|\Z)|(?<!\w)'(?!\s)(?:[^'\n]|(?<=\w)'(?=\w))*+'(?!\w)"""
)
_TABLE_ROW = pattern(r"^[ \t]*+\|.*+$", re.MULTILINE)
_HIDDEN_LINE = pattern(rf"^[ \t{HIDDEN}]++$", re.MULTILINE)
_EMPHASIS = pattern(r"\*++(?=\S)|(?<=\S)\*++")
_PLAIN = {ord("’"): "'", ord(STAND_IN): None}
_PARAGRAPH_END = pattern(r"\n[ \t]*+\n\s*+")
# A line that continues in lower case, or after a comma, was only wrapped.
_LINE_END = pattern(r"(?<![,，])\n(?![ \t]*+[a-z])")
_LIST_ITEM = pattern(r"[ \t]*+(?:[-*+•]|[0-9]{1,3}[.)])[ \t]++(?:\[[ xX]\][ \t]++)?")
_SENTENCE_END = pattern(r"(?<=[.!?])\s++|(?<=[。！？；])\s*+|;\s++")

_NEXT = r"[\[［]NEXT[:：][^\[\]［］\n`]++[\]］]"
_ESCAPED_MARKER = pattern(r"\\\[NEXT[:：][^\[\]\n`\\]++\\?+\]", re.ASCII | re.IGNORECASE)
_NEXT_MARKERS = pattern(rf"{_NEXT}(?:\s*+{_NEXT})*+", re.ASCII | re.IGNORECASE)
_QUOTED_LINE = pattern(r"[ \t]*+(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]++)*+>")
_FENCE = r"(?:`{3,}+|~{3,}+)"
_FENCE_ABOVE = pattern(rf"(?:\A|\n)[ \t]*+{_FENCE}[^\n`]*+\n\s*+\Z")
_FENCE_BELOW = pattern(rf"\n[ \t]*+{_FENCE}")
_PROSE_FENCE = pattern(rf"\s*+{_FENCE}(?:markdown|md|te?xt|plaintext)?[ \t]*+\n", re.IGNORECASE)
# Closing punctuation, and perhaps a word of thanks.
_NOTHING_MORE = pattern(r"[`~*_\]\s.。!！]*+(?:(?<=\n)[^\n]{1,25}+)?\s*+\Z")
_MENTIONS_MARKERS = pattern(r"\bmarkers?\b|syntax|backtick|标记|写法|语法", re.IGNORECASE)
_EXPLAINS_HOW = pattern(
    r"\b(?:to hand over|write|wrote|use|type|add|append|put|ends?|ended|says?|reads|instead|like this|example|e\.g)\b"
    r"|格式|例如|比如|示例|应该写|改成|改为",
    re.IGNORECASE,
)
_HANDS_OVER = pattern(
    r"\b(?:over|hand\w*|pass\w*|back|next|then|so|ready|please|for|turn)\b|交|请|接下来|下一步|转给|轮到|由",
    re.IGNORECASE,
)


class Sentence(Struct, frozen=True):
    """A sentence, or the text of a line without one."""

    text: str
    in_list: bool = False
    begins_paragraph: bool = False


def last_sentences(text: str, visible: str) -> list[Sentence]:
    """Return the last paragraph's sentences, and the last two outside of lists. `visible` is `text` without code."""
    for hidden in (_ESCAPED_MARKER, _MARKER):
        visible = hidden.sub(lambda marker: HIDDEN * len(marker[0]), visible)
    ending, is_whole = _ending(text, visible)
    *earlier, last = (_sentences(paragraph) for paragraph in _PARAGRAPH_END.split(ending))
    sentences = [sentence for paragraph in earlier for sentence in paragraph] + last
    outside_lists = [number for number, sentence in enumerate(sentences) if not sentence.in_list]
    first = min([len(sentences) - len(last), *outside_lists[-2:]])
    return sentences[first if is_whole else max(first, 1) :]


def all_sentences(text: str, visible: str) -> list[str]:
    """Return all sentences of a text without code, quotes and tables. `visible` is `text` without code."""
    paragraphs = _PARAGRAPH_END.split(_prose(text, visible).strip())
    return [sentence.text for paragraph in paragraphs for sentence in _sentences(paragraph, longest=len(text))]


def _ending(text: str, visible: str) -> tuple[str, bool]:
    """Return the end of a reply that may hand over, and whether that is the whole reply."""
    end = len(visible.rstrip(f"{HIDDEN}{WHITE_SPACE}-_*`"))
    start = max(0, end - LONGEST_ENDING)
    return _prose(text[start:end], visible[start:end]).strip(), start == 0


def _prose(text: str, visible: str) -> str:
    # Code is hidden together with its line ends, which still end a paragraph.
    words = "".join("\n" if raw == "\n" else seen for raw, seen in zip(text, visible, strict=True))
    words = _EMPHASIS.sub("", _QUOTED.sub(HIDDEN, words))
    return _HIDDEN_LINE.sub("", _TABLE_ROW.sub("", words))


def _sentences(paragraph: str, longest: int = LONGEST_SENTENCE) -> list[Sentence]:
    found: list[Sentence] = []
    for line in _LINE_END.split(paragraph):
        item = _LIST_ITEM.match(line)
        for part in _SENTENCE_END.split(line[item.end() :] if item else line):
            words = " ".join(part.split()).translate(_PLAIN)
            if words and len(words) <= longest:
                found.append(Sentence(words, item is not None, not found))
    return found


def marker_in_code(text: str, visible: str) -> str:
    """Return the [NEXT: …] in code that a reply ends with, if it hands over. `visible` is `text` without code."""
    found = list(_NEXT_MARKERS.finditer(text, max(0, len(text.rstrip()) - LONGEST_ENDING)))
    if not found:
        return ""
    marker = found[-1]
    before = text[max(0, marker.start() - LONGEST_ENDING) : marker.start()]
    is_hidden = visible[marker.start()] == HIDDEN
    is_code = is_hidden and not _is_quoted(text, marker.start())
    is_last_code = is_code and _ends_in_code(text, visible, before, text[marker.end() :])
    return marker[0] if is_last_code and _introduces_hand_over(before) else ""


def escaped_marker(text: str, visible: str) -> str:
    r"""Return the \[NEXT: …\] that a reply ends with, if it hands over. `visible` is `text` without code."""
    found = list(_ESCAPED_MARKER.finditer(visible, max(0, len(text.rstrip()) - LONGEST_ENDING)))
    if not found or not _NOTHING_MORE.match(text[found[-1].end() :]):
        return ""
    before = text[max(0, found[-1].start() - LONGEST_ENDING) : found[-1].start()]
    return found[-1][0] if _introduces_hand_over(before) else ""


def _ends_in_code(text: str, visible: str, before: str, after: str) -> bool:
    """Return whether nothing follows a marker in a span, a block of its own, an open fence, or a reply of code only."""
    if not _NOTHING_MORE.match(after):
        return False
    in_span = before.endswith("`") and after.startswith("`")
    fence_is_open = not _FENCE_BELOW.search(after)
    all_is_code = _PROSE_FENCE.match(text) and not visible.strip(f"{HIDDEN} \n")
    return bool(in_span or fence_is_open or all_is_code or _FENCE_ABOVE.search(before))


def _is_quoted(text: str, position: int) -> bool:
    """Return whether there is a ">" before the line, however long, that a position is in."""
    start = max(text.rfind("\n", 0, position), text.rfind("\r", 0, position)) + 1
    return bool(_QUOTED_LINE.match(text, start, position))


def _introduces_hand_over(before: str) -> bool:
    """Return whether the sentence before a marker hands over, or at least does not explain how to."""
    is_alone = not _last_line(before).strip("`*_ \t")
    before = _FENCE_ABOVE.sub("", before).rstrip("`*_[( \t\n")
    sentence = re.split(rf"{_SENTENCE_END.pattern}|{_PARAGRAPH_END.pattern}", before)[-1]
    if _MENTIONS_MARKERS.search(sentence):
        return False
    if before.endswith((":", "：", "→", ">", "—", "–", "-")):
        return bool(_HANDS_OVER.search(sentence)) and not _EXPLAINS_HOW.search(sentence)
    return is_alone or before.endswith((".", "!", "?", "。", "！", "？", ")", "）"))


def _last_line(text: str) -> str:
    return text.rpartition("\n")[2]
