"""A snapshot: all files of a workspace at one moment."""

from msgspec import Struct


class Snapshot(Struct, frozen=True, kw_only=True):
    """All files at one moment."""

    id: str
    """What compare() and merge() take; empty: nothing is known."""
    note: str = ""
    """What is not in it, and why, in sentences."""
