"""Whether a CLI is started with the settings of its folder, without them, or not at all."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from bullpen.agents.folder_settings import SettingsFile, reading
from bullpen.agents.spec import AgentSpec
from bullpen.permissions import Permission
from bullpen.turn_events import Failed, Notice

MOST_NAMED = 5
HINT = "Look at them, and agree to them with `bullpen chat`, or remove them. On a worker they can only be removed."


class SettingsChoice(Struct, frozen=True, kw_only=True):
    """How one turn of a CLI is started."""

    spec: AgentSpec
    leaves_out: bool = False
    """Whether it is started without the settings of its folder, or some of them."""
    environment: Mapping[str, str] = {}
    """Variables that count more than any others."""
    refusal: Failed | None = None
    """Why it is not started."""
    notice: Notice | None = None
    """What people are told who might expect it to have the settings."""


def choose_settings(
    spec: AgentSpec,
    permission: Permission,
    folder: Path,
    agreed: Callable[[], Collection[str]],
    environment: Mapping[str, str],
) -> SettingsChoice:
    """Return how a CLI is started in a folder: without settings to which nobody has agreed."""
    settings = spec.folder_settings
    found = reading(settings, permission, folder)
    if not (found.reads or found.left_out):
        return SettingsChoice(spec=spec)
    missing = found.not_agreed(agreed()) if found.reads else ()
    if not (missing or found.left_out):
        return SettingsChoice(spec=spec.with_settings(folder))
    if must := [file for file in missing if file in found.must]:
        return SettingsChoice(spec=spec, refusal=_refusal(spec, must, settings.why))
    if obstacle := settings.obstacle(environment):
        return SettingsChoice(spec=spec, refusal=_refusal(spec, (*missing, *found.left_out), obstacle))
    text = f"It was started without {names_of(missing)}: nobody has agreed to these settings. `bullpen chat` asks."
    return SettingsChoice(
        spec=spec.without_settings(folder),
        leaves_out=True,
        environment=settings.environment,
        notice=Notice(kind="warning", text=text) if missing else None,
    )


def names_of(files: Sequence[SettingsFile]) -> str:
    """Return the names of settings files, not too many."""
    more = len(files) - MOST_NAMED
    names = ", ".join(file.name for file in files[:MOST_NAMED])
    return f"{names} and {more} more" if more > 0 else names


def _refusal(spec: AgentSpec, files: Sequence[SettingsFile], why: str) -> Failed:
    message = f"{spec.program} was not started: it would read {names_of(files)}, to which nobody has agreed ({why})."
    return Failed(kind="permission_refused", message=message, hint=HINT)
