"""What a difference is made of, copied into our repository, so that nobody's `git gc` can take it away."""

from bullpen.files.compare import DIFF
from bullpen.files.git import Git
from bullpen.files.repository import Repository

MOST_LOOSE = 500
"""More objects than that are kept in one pack."""


def keep(repository: Repository, before: str, after: str) -> None:
    """Copy all that differs between two trees, with the trees on the way to it; raises GitFailed."""
    printed = repository.git().run(*DIFF, "-t", "-z", "--raw", "--no-abbrev", "--no-renames", before, after)
    ids = {before, after}
    for words in printed.split(b"\0")[:-1:2]:
        old_mode, new_mode, old, new = words[1:].decode().split(" ")[:4]
        ids |= {blob for mode, blob in ((old_mode, old), (new_mode, new)) if mode not in ("000000", "160000")}
    keep_objects(repository, ids)


def keep_objects(repository: Repository, ids: set[str]) -> None:
    """Copy objects that are only in somebody else's repository; raises GitFailed."""
    alone = repository.git(alone=True)
    missing = missing_objects(alone, ids)
    if missing:
        given = "".join(f"{name}\n" for name in sorted(missing)).encode()
        command = ("unpack-objects", "-q") if len(missing) <= MOST_LOOSE else ("index-pack", "--stdin")
        with repository.git().started("pack-objects", "--stdout", "-q", "--window=0", given=given) as pack:
            alone.run(*command, given=pack)


def missing_objects(git: Git, ids: set[str]) -> set[str]:
    """Return which objects a repository has not."""
    given = "".join(f"{name}\n" for name in sorted(ids)).encode()
    printed = git.run("cat-file", "--batch-check=%(objectname)", "--buffer", given=given).decode()
    return {line.split()[0] for line in printed.splitlines() if line.endswith(" missing")}
