"""Exporter: sends spans over HTTP, and says once that it cannot."""

import logging
from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.http import trace_exporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

logger = logging.getLogger(__name__)


class Exporter(trace_exporter.OTLPSpanExporter):
    """An exporter for a process that runs for days, with a collector that does not."""

    def __init__(self) -> None:
        super().__init__()
        self._works = True
        self._is_closed = False
        # It would write several lines for every batch.
        logging.getLogger(trace_exporter.__name__).setLevel(logging.CRITICAL)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans, and log when that begins to fail or to work."""
        result = super().export(spans)
        works = result is SpanExportResult.SUCCESS
        if works != self._works and not self._is_closed:
            logger.warning("Traces are sent again." if works else CANNOT_SEND)
        self._works = works
        return result

    def shutdown(self) -> None:
        """Send no more. Doing it twice is harmless."""
        if not self._is_closed:
            self._is_closed = True
            super().shutdown()  # type: ignore[no-untyped-call]


CANNOT_SEND = (
    "Traces cannot be sent, and are dropped until they can: no collector takes them at OTEL_EXPORTER_OTLP_ENDPOINT. "
    "Start one, or set OTEL_TRACES_EXPORTER=none."
)
