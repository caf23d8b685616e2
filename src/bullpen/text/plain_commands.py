"""Commands in plain words: nothing in them is read by a shell or by the rules of a CLI."""

import re

# No quotes, commas, parentheses, stars, line breaks or shell operators: they would end a rule, or widen it.
_PLAIN_COMMAND = re.compile(r"[\w./@%+:][\w./@%+:-]*( [\w./@%+:=-]+)*")


def is_plain_command(text: str) -> bool:
    """Return whether a text is a command such as "npm test"; an option or a variable cannot come first."""
    return _PLAIN_COMMAND.fullmatch(text) is not None


def is_rule(text: str) -> bool:
    """Return whether a text is a rule on commands or tools: in plain words, maybe with a star at its end."""
    return is_plain_command(text) or (text.endswith("*") and is_plain_command(text[:-1].removesuffix(" ")))
