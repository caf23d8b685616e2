"""Markdown that somebody is still typing, completed so that it looks as it will when it is finished.

Markup that has begun and not ended is ended; markup that says nothing yet is left out until it does.
"""

import re

MOST_OPEN = 200
"""Characters. Emphasis that is still open after that many was probably no emphasis."""

# A line that may become a list item, a heading, a rule, a fence or the row under a table's heads.
_LINE_OF_MARKUP = re.compile(r"[ \t>]*(?:[-*+=_~`#:|]+|\d{1,9}[.)]?)?[ \t]*")
_RULE_OF_A_TABLE = re.compile(r"[ \t]*\|?[|: \t-]*")
_PART_OF_A_FENCE = re.compile(r"[ \t]*(?:`+|~+)")
_PART_OF_A_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\s]*\Z")
_PART_OF_A_MARKER = re.compile(
    r"[\[［](?:(?:FROM|NEXT|DROP|TEAM_TASK|DIFF|CHECKS|PICK|ASK|VERDICT|SUM[ _]UP)[:：][^\]］\n]*"
    r"|[ACDFNPSTV][A-Z_ ]{0,8})?\Z"
)
_MARKUP = re.compile(r"\\.|`+|\*+|_+|~~+", re.DOTALL)


def completed_lines(source: str) -> str:
    """Return a text without a last line that is only markup so far, and with the rule of a table that has begun."""
    before, _, last = source.rpartition("\n")
    table = _completed_table(source)
    if table is not None:
        return table
    return before if last and _LINE_OF_MARKUP.fullmatch(last) else source


def completed_code(content: str) -> str:
    """Return a block of code without a last line that may become its end."""
    before, line_end, last = content.removesuffix("\n").rpartition("\n")
    return before + line_end if last and _PART_OF_A_FENCE.fullmatch(last) else content


def completed_words(text: str) -> str:
    """Return the text of a paragraph with everything ended that it has begun: emphasis, code, a link."""
    text = _PART_OF_A_MARKER.sub("", text)
    text = _PART_OF_A_LINK.sub(r"\1", text)
    is_open: list[tuple[str, int]] = []
    at = 0
    while found := _MARKUP.search(text, at):
        run, start, at = found[0], found.start(), found.end()
        if run[0] == "`":
            end = _end_of_code(text, run, at)
            if end is None:
                return _closed(_closed_code(text, run, start), is_open)
            at = end
        elif run[0] != "\\":
            if at == len(text):
                left = _without_closed(run, is_open)
                text = text if not left else text[:start] + run[: len(run) - len(left)]
                break
            _note(run, text, start, at, is_open)
    return _closed(text, is_open)


def _completed_table(source: str) -> str | None:
    """Return a text that ends with the heads of a table with the rule below them; None if it does not."""
    lines = source.split("\n")
    rows = 0
    while rows < len(lines) and lines[-1 - rows].lstrip().startswith("|"):
        rows += 1
    first = len(lines) - rows
    if rows == 0 or rows > 2 or (rows == 2 and not _RULE_OF_A_TABLE.fullmatch(lines[-1])):
        return None
    heads = lines[first].strip().strip("|")
    if not heads.strip():
        return "\n".join(lines[:first])
    rule = "|" + "---|" * (heads.count("|") + 1)
    return "\n".join([*lines[:first], f"|{heads}|", rule])


def _end_of_code(text: str, run: str, at: int) -> int | None:
    ends = (found.end() for found in _MARKUP.finditer(text, at) if found[0] == run)
    return next(ends, None)


def _closed_code(text: str, run: str, start: int) -> str:
    code = text[start + len(run) :].rstrip("`")
    return text[:start] + run + code + run if code.strip() else text[:start]


def _note(run: str, text: str, start: int, end: int, is_open: list[tuple[str, int]]) -> None:
    """Remember what a run of markup in the middle of a text opens, and forget what it closes."""
    before, after = text[start - 1 : start], text[end : end + 1]
    left = run
    if before.strip() and not (run[0] == "_" and after.isalnum()):
        left = _without_closed(run, is_open)
    if left and after.strip() and not before.isalnum() and len(text) - start <= MOST_OPEN:
        is_open.append((left, start))


def _without_closed(run: str, is_open: list[tuple[str, int]]) -> str:
    """Return what is left of a run of markup after it has closed what it can."""
    while is_open and is_open[-1][0][0] == run[:1] and len(is_open[-1][0]) <= len(run):
        run = run[len(is_open.pop()[0]) :]
    return run


def _closed(text: str, is_open: list[tuple[str, int]]) -> str:
    return text.rstrip() + "".join(run for run, _ in reversed(is_open)) if is_open else text
