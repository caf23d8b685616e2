"""The options of one command: in any order, with a suggestion for what does not exist."""

import argparse
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice

# Not from typing: importing that would take a tenth of the time that --help takes.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

WRONG_USAGE = 2


class CommandParser(argparse.ArgumentParser):
    """Takes options before, between and after words."""

    def __init__(self, prog: str, purpose: str, about_word: Callable[[str], str] | None = None) -> None:
        super().__init__(
            prog=prog,
            description=f"{purpose[0].upper()}{purpose[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self._about_word = about_word
        """Says what is wrong with a word that is one too many."""
        self.add_argument(
            "--debug",
            action="store_true",
            help="log every prompt as it is sent, and show tracebacks; DEBUG=1 does the same",
        )

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """Return the options in these words, or leave with the exit code of wrong usage."""
        options, unknown = self.parse_known_args(self._options_first(words))
        # Without a place for words, argparse leaves the dashes before them.
        unknown = unknown[1:] if unknown[:1] == ["--"] else unknown
        if unknown and self._about_word is not None:
            self.error(self._about_word(unknown[0]))
        elif unknown:
            self.error(f"There are too many words: {' '.join(unknown)}")
        return options

    def _options_first(self, words: Sequence[str]) -> list[str]:
        """Return the same words in the order that argparse takes: options, and then the rest."""
        options, others = list[str](), list[str]()
        following = iter(words)
        for word in following:
            name, equals, _ = word.partition("=")
            if word == "--":
                others += following
            elif word == "-" or not word.startswith("-") or " " in name:
                others.append(word)
            elif self._option(name).nargs == 0 or equals:
                options.append(word)
            else:
                # With its value in one word, which may then begin with a dash.
                options += [f"{name}={value}" for value in islice(following, 1)] or [name]
        return [*options, "--", *others] if others else options

    def _option(self, name: str) -> argparse.Action:
        """Return the option of this name, or the only one that begins so."""
        known = self._option_string_actions
        fitting = [known[name]] if name in known else [known[one] for one in known if one.startswith(name)]
        if len(fitting) != 1:
            self.error(f"There is no option {name}.{suggestion(name, known)}")
        return fitting[0]

    def error(self, message: str) -> "NoReturn":
        """Say what is wrong, and where to read more."""
        from bullpen.text.safe import printable

        message = message.removeprefix("argument ")
        sentence = f"{message[0].upper()}{message[1:]}"
        full_stop = "" if sentence.endswith((".", "?")) else "."
        self.exit(WRONG_USAGE, printable(f"{self.prog}: {sentence}{full_stop} Try: {self.prog} --help") + "\n")


def split(words: Sequence[str], names: Collection[str]) -> tuple[str | None, list[str]]:
    """Return which of the names the first word is that is not an option, and the other words.

    A word right after an option may be its value, so a name may still follow it.
    """
    for index, word in enumerate(words):
        if word in names:
            return word, [*words[:index], *words[index + 1 :]]
        is_value = index > 0 and words[index - 1].startswith("-")
        if word == "--" or not (word.startswith("-") or is_value):
            break
    return None, list(words)


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a question about what was probably meant, after a space; or nothing."""
    from bullpen.text.names import nearest

    close = nearest(word, known)
    return f" Did you mean {' or '.join(close)}?" if close else ""


def listed(heading: str, purposes: Mapping[str, str]) -> str:
    """Return names and what they are for, as argparse would list them."""
    import textwrap
    from shutil import get_terminal_size

    shown: dict[str, str] = {}
    for name, purpose in purposes.items():
        # A second name for the same is not listed.
        shown.setdefault(purpose, name)
    margin = max(map(len, shown.values())) + 4
    lines = [f"{heading}:"]
    for purpose, name in shown.items():
        beginning = f"  {name}".ljust(margin)
        wrapper = textwrap.TextWrapper(max(get_terminal_size().columns - 2, 2 * margin))
        wrapper.initial_indent, wrapper.subsequent_indent = beginning, " " * margin
        lines.append(wrapper.fill(purpose))
    return "\n".join(lines)
