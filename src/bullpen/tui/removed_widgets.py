"""A widget that has just been removed may still be painted once; in Textual that is an error, which ends the app."""

from typing import Any

from textual.dom import NoScreen
from textual.screen import Screen

_paint = Screen._compositor_refresh


def _paint_what_is_left(screen: Screen[Any]) -> None:
    """Paint; if something was removed meanwhile, lay out everything again, and paint with the next frame."""
    try:
        _paint(screen)
    except NoScreen:
        for one in screen.app.screen_stack:
            one.refresh(layout=True)


def survive_removed_widgets() -> None:
    """Let every screen survive it, also those of Textual itself.

    https://github.com/Textualize/textual/issues/5629
    """
    Screen._compositor_refresh = _paint_what_is_left  # type: ignore[method-assign, assignment]
