"""Texts of lines that are hard to tell apart: lists, quotes, fences, spans and headings, indented and nested."""

import re
from random import Random

NAME = re.compile("w[0-9]+w")

INDENTS = ("", "", "", "", " ", "  ", "   ", "    ", "     ", "      ", "\t", " \t")
CONTAINERS = ("", "", "", "> ", ">", "> > ", "- ", "* ", "+   ", "1. ", "2) ", "10. ", "- > ", "> - ", "-\t", ">\t")
CONTENTS = (
    *("a", "b c", "", "", " ", "# a", "#a", "---", "***", "* * *", "===", "-", "1.", "12", "**a** b", "_", "~a~"),
    *(
        "`",
        "``",
        "`a`",
        "`` ` ``",
        "\\`",
        "\\\\`",
        "*`a",
        "a ` b",
        "```",
        "````",
        "~~~",
        "~~~~",
        "```py",
        "``` `",
        "~~~ `",
    ),
)
MARKERS = ("", "[NEXT: §]", "[NEXT: §] `", "` [NEXT: §]", "``[NEXT: §]", "[NEXT: §] ``", "\\`[NEXT: §]")
LINE_ENDS = ("\n", "\n", "\n", "\n\n", "\r\n", "\n")


def hostile_lines(random: Random) -> str:
    """Return one text, in which every marker has a name of its own."""
    # Few signs at a time, so that those that work together meet often.
    contents, containers = random.sample(CONTENTS, 8), random.sample(CONTAINERS, 4)
    lines = [
        random.choice(INDENTS)
        + random.choice(containers)
        + random.choice(contents)
        + random.choice(MARKERS)
        + random.choice(LINE_ENDS)
        for _ in range(random.randint(2, 24))
    ]
    first, *others = "".join(lines).split("§")
    return first + "".join(f"w{number}w{part}" for number, part in enumerate(others))
