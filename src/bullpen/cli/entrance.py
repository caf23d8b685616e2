"""A private file that leads a browser to an address: on a command line, every user of the machine could read it."""

import html
import os
import shutil
import tempfile
import webbrowser
from pathlib import Path
from typing import Self

FILE_MODE = 0o600
SNAPS = Path("/snap")
AT_ONCE = "open"
"""With this after it, the page at the address signs the browser in without a button."""
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={url}">
<title>bullpen</title>
</head>
<body><p>Opening <a href="{url}">bullpen</a> …</p></body>
</html>
"""


def leading_to(url: str) -> str:
    """Return a page that leads to an address, and in."""
    return PAGE.format(url=html.escape(f"{url}#{AT_ONCE}"))


class Entrance:
    """Such a file, in a folder that only we can read, until its address was used or the program ends."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._url = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()

    def open(self, url: str) -> None:
        """Open an address in the browser."""
        self._folder, self._url = Path(tempfile.mkdtemp(prefix="bullpen-", dir=_place())), url
        file = self._folder / "bullpen.html"
        with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE), "w", encoding="utf-8") as page:
            page.write(leading_to(url))
        webbrowser.open(file.as_uri())

    def remove(self, ticket: str) -> None:
        """Remove the file if this is the ticket in its address: the browser has read it."""
        if self._url.endswith(f"/{ticket}"):
            self._remove()

    def _remove(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _place() -> Path | None:
    """Return where every browser can read; None: where other files are for a while.

    A browser from a snap has a /tmp of its own, and sees nothing in a home whose name begins with a dot.
    """
    home = Path.home()
    return home if SNAPS.is_dir() and os.access(home, os.W_OK) else None
