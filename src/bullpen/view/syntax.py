"""Syntax: the rows of a diff in pieces of one kind, so that every door can colour code in its own way."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from bullpen.view.diff import Row

PieceKind = Literal["", "keyword", "name", "string", "number", "comment"]
Piece = tuple[PieceKind, str]

MOST_CHARACTERS = 30_000
"""Of rows that are coloured together; more are plain."""
LONGEST_LINE = 1_000
"""Some lexers are very slow for longer lines, and an agent may write anything."""
LANGUAGES: dict[str, str] = {
    **dict.fromkeys(("py", "pyi"), "python"),
    **dict.fromkeys(("js", "mjs", "cjs"), "javascript"),
    **dict.fromkeys(("sh", "bash", "zsh"), "bash"),
    **dict.fromkeys(("c", "h"), "c"),
    **dict.fromkeys(("cc", "cpp", "cxx", "hh", "hpp"), "cpp"),
    **dict.fromkeys(("html", "htm"), "html"),
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    **dict.fromkeys(("kt", "kts"), "kotlin"),
    **dict.fromkeys(("ini", "cfg", "conf"), "ini"),
    **{
        name: name
        for name in (
            "css",
            "go",
            "java",
            "json",
            "jsx",
            "lua",
            "php",
            "scala",
            "sql",
            "swift",
            "toml",
            "tsx",
            "xml",
            "zig",
        )
    },
    "cs": "csharp",
    "rb": "ruby",
    "rs": "rust",
    "ts": "typescript",
    "dockerfile": "dockerfile",
    "makefile": "make",
}
"""By the end of a file's name, or all of it."""


def colored_rows(path: str, rows: Sequence[Row]) -> list[tuple[Piece, ...]]:
    """Return each row's text in pieces; a plain one where the language is not known or there is too much."""
    language = LANGUAGES.get(path.rpartition("/")[2].rpartition(".")[2].lower(), "")
    size = sum(len(row.text) for row in rows)
    if not language or size > MOST_CHARACTERS or any(len(row.text) > LONGEST_LINE for row in rows):
        return [(("", row.text),) for row in rows]
    # A row that was removed belongs to another text than one that was added in its place.
    old = iter(_lines(language, [row.text for row in rows if row.kind in ("context", "removed")]))
    new = iter(_lines(language, [row.text for row in rows if row.kind in ("context", "added")]))
    return [_next_pieces(row, old, new) for row in rows]


def _next_pieces(row: Row, old: Iterator[tuple[Piece, ...]], new: Iterator[tuple[Piece, ...]]) -> tuple[Piece, ...]:
    before = next(old, ()) if row.kind in ("context", "removed") else ()
    after = next(new, ()) if row.kind in ("context", "added") else ()
    found = after or before
    # A lexer may read a line break in a line where we do not, and then nothing is in its place.
    return found if "".join(text for _, text in found) == row.text else (("", row.text),)


def _lines(language: str, texts: Sequence[str]) -> list[tuple[Piece, ...]]:
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    lines: list[list[Piece]] = [[]]
    for token, text in lexer.get_tokens("\n".join(texts)):
        first, *others = text.split("\n")
        kind = _kind_of(token)
        lines[-1] += [(kind, first)] if first else []
        lines.extend([(kind, other)] if other else [] for other in others)
    return [tuple(_joined(line)) for line in lines]


def _joined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield pieces of the same kind that follow each other as one."""
    kind: PieceKind = ""
    text = ""
    for next_kind, next_text in pieces:
        if next_kind != kind and text:
            yield kind, text
            text = ""
        kind, text = next_kind, text + next_text
    if text:
        yield kind, text


def _kind_of(token: object) -> PieceKind:
    from pygments.token import Comment, Keyword, Literal, Name, Number, Operator, String

    kinds: tuple[tuple[object, PieceKind], ...] = (
        (Comment, "comment"),
        (Keyword, "keyword"),
        (Operator.Word, "keyword"),
        (String, "string"),
        (Number, "number"),
        (Literal, "string"),
        (Name.Function, "name"),
        (Name.Class, "name"),
        (Name.Decorator, "name"),
        (Name.Tag, "name"),
        (Name.Builtin, "name"),
    )
    return next((kind for one, kind in kinds if token in one), "")  # type: ignore[operator]
