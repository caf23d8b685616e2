"""A prompt of an editor as the text of a message: what a person wrote, and the files that they named."""

import re
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from bullpen.cli.editor.shapes import Audio, Block, Image, Link, Resource, Text
from bullpen.errors import BullpenError

FROM_ANOTHER_TEAM = "This team is one member of another team, and this is what that member is asked:"
_FENCES = re.compile(r"`{3,}")


def prompt_text(blocks: Sequence[Block]) -> str:
    """Return the text of a message: names of files where they were written, and what is in them after it."""
    said: list[str] = []
    files: list[str] = []
    for block in blocks:
        match block:
            case Text(text=text):
                said.append(text)
            case Link(uri=uri):
                said.append(f"`{_path(uri)}`")
            case Resource(resource=contents):
                path = _path(contents.uri)
                said.append(f"`{path}`")
                if contents.text is not None:
                    files.append(f"`{path}`:\n{fenced(contents.text)}")
            case Image() | Audio():
                raise BullpenError("bullpen takes text and files, but no pictures and no sounds.")
    return "\n\n".join(["".join(said), *files])


def of_another_team(text: str) -> str:
    """Return the prompt of a bullpen in which this team is one member: names and markers in it are not meant for us."""
    return f"{FROM_ANOTHER_TEAM}\n\n{fenced(text)}"


def fenced(text: str, language: str = "") -> str:
    """Return a text as a block of code in Markdown, which nothing in it can end."""
    longest = max((len(found) for found in _FENCES.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.removesuffix(chr(10))}\n{fence}"


def _path(uri: str) -> str:
    """Return the path that an address of a file leads to, with its lines; any other address as it is."""
    parts = urlsplit(uri)
    if parts.scheme != "file":
        return uri.replace("`", "")
    return (unquote(parts.path) + (f"#{parts.fragment}" if parts.fragment else "")).replace("`", "")
