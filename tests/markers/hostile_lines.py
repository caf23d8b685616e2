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
ORDINARY_LINES = (
    *(
        "",
        "",
        " ",
        "\r",
        "- a `b` c",
        "- `a`",
        "1. x `y`",
        "2. z",
        "10. t `v`",
        "  - n `m`",
        "    more `w` x `y`",
        "  more",
    ),
    *("lazy `x` y `z`", "\tt `u`", "# h `i`", "it`s", "a ` b", "``x`y`` z", "\\`k` l", "---", "===", "-", "- ", "x\\"),
    *("> q", "> q `a` b", "> - l", "> # h", "> ```", ">", "- > q", "-     > w", "  > `", "     > `v` w", "a > b `c`"),
    *("```", "~~~", "   ```", "  ```", "- ~~~", "``` `", "```x```", "a ~~~ b", "a ~~b~~ `c`", "| `a` | b |", "- `c`\r"),
)
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


def ordinary_lines(random: Random) -> str:
    """Return one text of lines as agents write them, in any order: most code spans end in their line."""
    lines = random.sample(ORDINARY_LINES, random.randint(3, 10))
    return "\n".join(random.choice(lines) for _ in range(random.randint(2, 30)))
