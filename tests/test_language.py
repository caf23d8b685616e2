"""What people read is plain English: phrases that read as translated stay out of strings, docstrings and comments."""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "bullpen"

# A phrase that reads as translated, and what to write instead.
PHRASES = {
    # "There is no team file" is fine.
    r"(?<!there )\b(?:is|are|was|were) no\b(?! longer)": "is not a",
    r"(?<!there )\b(?:is|are|was|were) none\b": "is not one",
    r"\bbehind\b": "after",
    r"\banew\b": "again",
    r"\bnews\b": "event",
    r"\bwithout hands\b": "by itself",
    r"\bwhom?ever\b": "the person who",
    r"\bat work\b": "is working",
    r"\bgo(?:es|ing)? on\b": "continue",
    r"\bso (?:often|many)\b": "how many times, this many",
    r"\b(?:lies|stands?) (?:in(?! for)|there|here|behind|between|for|on|at|before|above|outside)\b": "is",
    r"\bas (?:it|they) stands?\b": "as it is",
    r"\bin vain\b": "without success",
    r"\bwhatever\b": "regardless of, anything that",
    r"\bshall\b": "should",
    r"\bfor ever\b": "forever",
    r"\bin the open\b": "as plain text",
    r"\bown affair\b": "say who decides",
    r"\bleave \S+ away\b": "omit",
    r"\bknown are\b": "known types",
    r"\btells? whether\b": "return whether",
    r"\btakes (?:no|only)\b": "accepts",
    r"\bno telling\b": "not known",
    r"\bis (?:said|told) (?:so|twice|again)\b": "is reported, is repeated",
    r"\bmouth\b": "say what is meant",
}

ANY_PHRASE = re.compile("|".join(PHRASES), re.IGNORECASE)

NOT_YET: tuple[str, ...] = ()
"""Packages that are still to be read through."""

EXEMPT = {
    "routing/hand_over_phrases.py": "patterns for what agents write",
    "routing/name_patterns.py": "words that agents use for nobody in particular",
}
"""Files whose strings are not ours, and why. Their docstrings and comments are checked."""

EXEMPT_TEXTS = {
    "news": "an event in the API of an earlier version",
    "processes left behind turn=%s pids=%s": "a log message; left behind means left running",
}
"""Single strings that may stay, and why."""


def found_in(texts: Iterable[str]) -> Iterator[str]:
    """Yield what is wrong with texts: the phrase, some words around it, and what to write instead."""
    for text in filter(ANY_PHRASE.search, texts):
        for pattern, instead in PHRASES.items():
            for match in re.finditer(pattern, text, re.IGNORECASE):
                around = " ".join(text[max(0, match.start() - 40) : match.end() + 40].split())
                yield f"{match[0]!r} in “{around}”; write: {instead}"


def texts_of_python(source: str, *, strings: bool = True) -> list[str]:
    """Return the docstrings and comments of a module, and its other strings unless they are not ours."""
    described, others, comments = all_texts(source)
    return [*described, *(others if strings else ()), *comments]


@cache
def all_texts(source: str) -> tuple[list[str], list[str], list[str]]:
    """Return the strings that describe what is above them, the other strings, and the comments."""
    nodes = list(ast.walk(ast.parse(source)))
    described = {
        id(node.value) for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    texts: tuple[list[str], list[str]] = ([], [])
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts[id(node) not in described].append(node.value)
    return *texts, comments_of(source)


def comments_of(source: str) -> list[str]:
    """Return the comments of a module, if something after a # is suspicious: to find them all takes a second."""
    if not any(ANY_PHRASE.search(line.partition("#")[2]) for line in source.splitlines()):
        return []
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def texts_of(path: Path) -> Iterator[str]:
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield source
        return
    strings = path.relative_to(SOURCE).as_posix() not in EXEMPT
    yield from (text for text in texts_of_python(source, strings=strings) if text not in EXEMPT_TEXTS)


def files_to_check() -> Iterator[Path]:
    yield from (path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] not in NOT_YET)
    yield from (SOURCE / "web" / "templates").iterdir()
    yield from (path for path in (SOURCE / "web" / "static").glob("*.js") if not path.name.endswith(".min.js"))


def test_texts_are_plain_english_and_exemptions_are_needed() -> None:
    found = {path.relative_to(SOURCE): list(found_in(texts_of(path))) for path in files_to_check()}

    assert {path: texts for path, texts in found.items() if texts} == {}
    # In the same test, since it reads the same files again.
    sources = (path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    assert EXEMPT_TEXTS.keys() <= {text for source in sources for text in texts_of_python(source)}
    for name in EXEMPT:
        assert list(found_in(texts_of_python((SOURCE / name).read_text(encoding="utf-8"))))


@pytest.mark.parametrize(
    "source",
    [
        '"""This is no text file."""',
        "x = 1  # what is behind it",
        'def f(n):\n    return f"{n} so many turns"',
        'class A:\n    b: int\n    """Whoever waits."""',
        'raise ValueError("the conversation goes on")',
    ],
)
def test_a_planted_phrase_is_found(source: str) -> None:
    assert len(list(found_in(texts_of_python(source)))) == 1


@pytest.mark.parametrize(
    "source",
    ['"""There is no team file, and it is no longer read."""', "at_work = behind = 1", 'x = f"{behind} turns"'],
)
def test_good_english_is_left_alone(source: str) -> None:
    assert list(found_in(texts_of_python(source))) == []


def test_strings_of_others_are_left_alone_and_what_describes_them_is_not() -> None:
    source = '"""Words behind a name."""\nWORDS = "whoever|anyone"  # so many\n'

    assert len(list(found_in(texts_of_python(source, strings=False)))) == 2
