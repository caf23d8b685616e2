"""What the environment asks for: where traces go, and whether they contain what was said."""

from collections.abc import Mapping

from msgspec import Struct

from bullpen.config import is_yes
from bullpen.errors import BullpenError

WITH_CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The usual name for this in programs that follow the GenAI conventions."""
EXPORTER = "OTEL_TRACES_EXPORTER"
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
ON_SPANS = frozenset({"span_only", "span_and_event"})


class Settings(Struct, frozen=True, kw_only=True):
    """What is wanted; the exporter reads where and how to send it from the standard variables."""

    traces: bool = True
    content: bool = False


def settings_from(environ: Mapping[str, str]) -> Settings:
    """Return what the environment asks for, or raise BullpenError if it cannot be done."""
    exporter = environ.get(EXPORTER, "").strip().lower() or "otlp"
    if exporter not in ("otlp", "none"):
        raise BullpenError(f"{EXPORTER} is {exporter!r}. bullpen knows: otlp, none.")
    traces = exporter == "otlp" and not is_yes(environ.get("OTEL_SDK_DISABLED"))
    protocol = next((environ[name] for name in PROTOCOLS if environ.get(name)), "http/protobuf").strip().lower()
    if traces and protocol != "http/protobuf":
        raise BullpenError(
            f"bullpen sends traces with http/protobuf, not with {protocol!r}. Set {PROTOCOLS[0]}=http/protobuf, "
            "and the endpoint to the collector's port for that, usually 4318."
        )
    asked = environ.get(WITH_CONTENT, "").strip().lower()
    return Settings(traces=traces, content=is_yes(asked) or asked in ON_SPANS)
