"""Paths as bytes, and as they are stored and shown."""

from bullpen.file_changes import FileChange


def shown(path: bytes) -> tuple[str, bytes]:
    """Return a path to show, and the path itself if it cannot be told from that."""
    try:
        return path.decode(), b""
    except UnicodeDecodeError:
        return path.decode(errors="replace"), path


def path_of(change: FileChange) -> bytes:
    """Return the path of a changed file."""
    return change.raw_path or change.path.encode()


def path_before(change: FileChange) -> bytes:
    """Return where the file was before."""
    return change.raw_renamed_from or change.renamed_from.encode() or path_of(change)


def folders_above(path: bytes) -> list[bytes]:
    """Return the folders that a path is in."""
    parts = path.split(b"/")
    return [b"/".join(parts[:count]) for count in range(1, len(parts))]
