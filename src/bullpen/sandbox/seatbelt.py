"""A profile as the text that `sandbox-exec -p` takes on macOS. Tested as text only: it was never run."""

from collections.abc import Iterator

from bullpen.sandbox.profile import Place, Profile

HEADER = (
    *("(version 1)", "(allow default)", "(deny file-write*)", '(allow file-write* (subpath "/dev"))'),
    *("(deny process-info* (target others))", "(deny signal (target others))", "(deny mach-priv-task-port)"),
)
_SOCKETS = "(deny network-outbound (remote unix-socket))"


def profile_text(profile: Profile) -> str:
    """Return the rules; of several that fit, the last one counts."""
    lines = [*HEADER, _SOCKETS, *(line for place in profile.places for line in _lines(place))]
    return "\n".join([*lines, *([] if profile.network else ["(deny network*)"]), ""])


def _lines(place: Place) -> Iterator[str]:
    at = f"({'subpath' if place.is_folder else 'literal'} {_quoted(place.path)})"
    match place.access:
        case "write":
            yield f"(allow file-read* file-write* {at})"
        case "read":
            yield f"(allow file-read* {at})"
            yield f"(deny file-write* {at})"
        case "nothing":
            yield f"(deny file-read* file-write* {at})"
        case "instead":
            # Nothing can be put in its place: it is not there, and the variable TMPDIR names what is used instead.
            yield f"(deny file-read* file-write* {at})"
            yield f"(allow file-read* file-write* (subpath {_quoted(place.source)}))"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
