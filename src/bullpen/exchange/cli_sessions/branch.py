"""Sessions whose records are a tree: each names the one before it, and going back to an earlier one begins a branch."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from bullpen.exchange.cli_sessions.parts import Part


class Node(Struct, frozen=True, gc=False):
    """A record, with what was said in it."""

    id: str
    parent: str
    """Empty if it is the first."""
    parts: tuple[Part, ...]

    @property
    def begins_turn(self) -> bool:
        """Whether a person says something in it."""
        return any(part.kind in ("person", "command") for part in self.parts)


def last_branch(nodes: Sequence[Node]) -> Iterator[Part]:
    """Yield what was said on the branch of the last record, in the order of the file.

    Whole turns are on it or not: records of tools that ran at the same time are branches, too, and belong together.
    """
    on_branch = _ancestors(nodes)
    is_kept = True
    for position, node in enumerate(nodes):
        if node.begins_turn:
            is_kept = position in on_branch
        if is_kept:
            yield from node.parts


def _ancestors(nodes: Sequence[Node]) -> set[int]:
    """Return the positions of the last record and of all before it. Where one is missing, its line was damaged."""
    positions = {node.id: position for position, node in enumerate(nodes)}
    found = set[int]()
    position = len(nodes) - 1
    while position >= 0:
        if position in found:
            position -= 1
            continue
        found.add(position)
        parent = nodes[position].parent
        if not parent:
            break
        position = positions.get(parent, position - 1)
    return found
