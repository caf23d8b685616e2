"""held: a command as it is started so that the system holds it, and what is put right once it has ended."""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bullpen.permissions import Permission
from bullpen.sandbox import bubblewrap
from bullpen.sandbox.caches import CACHES, cache_variables
from bullpen.sandbox.layout import Surroundings, layout_of
from bullpen.sandbox.mechanism import Mechanism
from bullpen.sandbox.placeholders import placed
from bullpen.sandbox.profile import Profile, profile_for
from bullpen.sandbox.rules import SandboxRules


class Held(Struct, kw_only=True):
    """How a program is started that is held."""

    prefix: tuple[str, ...] = ()
    """What comes before its command; nothing: it is not held."""
    environment: Mapping[str, str] = {}
    """The variables that it gets beside its own."""
    profile: Profile | None = None
    put_back: tuple[str, ...] = ()
    """Once it has ended: where that is now which it made in places where it would make programs run."""


def is_held(rules: SandboxRules, permission: Permission, by: Mechanism) -> bool:
    """Return whether a program with these permissions is held here."""
    return rules.hold(permission) and by.works


@contextmanager
def held(
    around: Surroundings, rules: SandboxRules, permission: Permission, by: Mechanism, notes: Path
) -> Iterator[Held]:
    """Yield how to start a program so that it is held; its private folder is removed afterwards.

    `notes` is a folder for what has to be known after a crash.
    """
    if not is_held(rules, permission, by):
        yield Held()
        return
    import tempfile

    outer = tempfile.mkdtemp(prefix="bullpen-")
    try:
        private = Path(os.path.realpath(outer), "tmp")
        private.mkdir()
        layout = layout_of(replace(around, private=private), rules, permission)
        for file, copy in layout.copies:
            shutil.copyfile(file, copy)
        with placed(layout.folder, layout.placeholders, notes) as empty:
            layout = replace(layout, placeholders=empty)
            profile = profile_for(layout, permission, network=rules.network)
            prefix = bubblewrap.arguments(profile, by.program, is_root=os.getuid() == 0)
            environment = _variables(around.environment, layout.written, layout.home, layout.temporary)
            started = Held(prefix=prefix, environment=environment, profile=profile)
            try:
                yield started
            finally:
                started.put_back = tuple(_put_back(profile.must_stay))
    finally:
        shutil.rmtree(outer, ignore_errors=True)


def _variables(
    environment: Mapping[str, str], written: Sequence[str], home: str, temporary: Sequence[str]
) -> dict[str, str]:
    import tempfile

    place = environment.get("TMPDIR") or tempfile.gettempdir()
    place = place if os.path.realpath(place) in temporary else temporary[0]
    kept = {cache.variable: "" for cache in CACHES if _is_below_one(f"{home}/{cache.folder}", written)}
    return {"TMPDIR": place, **cache_variables({**environment, **kept}, place)}


def _is_below_one(path: str, folders: Sequence[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def _put_back(must_stay: Sequence[tuple[str, str | None]]) -> Iterator[str]:
    """Put back what could not be held, and yield where that is now which was there instead.

    It is set aside and not removed: a person may have made it meanwhile.
    """
    for path, target in must_stay:
        now = os.readlink(path) if os.path.islink(path) else None  # noqa: PTH114, PTH115
        if now == target and os.path.lexists(path) == (target is not None):
            continue
        # CLIs make empty folders for what a person may put there.
        with suppress(OSError):
            os.rmdir(path)  # noqa: PTH106
        if os.path.lexists(path):
            aside = next(name for n in count(1) if not os.path.lexists(name := f"{path}.set-aside-{n}"))
            with suppress(OSError):
                os.rename(path, aside)  # noqa: PTH104
                yield aside
        if target is not None:
            with suppress(OSError):
                os.symlink(target, path)  # noqa: PTH211
