"""A collector that prints the traces it is sent: python examples/collector.py [PORT]."""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector(BaseHTTPRequestHandler):
    """Takes one request after the other."""

    def do_POST(self) -> None:
        """Print the spans of a request, each below the one that it is part of."""
        request = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
        spans = [span for one in request.resource_spans for scope in one.scope_spans for span in scope.spans]
        show(sorted(spans, key=lambda span: span.start_time_unix_nano), b"", "")
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing else."""


def show(spans: list[Span], parent: bytes, indent: str) -> None:
    """Print the spans of a parent, and below each its own."""
    for span in spans:
        if span.parent_span_id == parent:
            seconds = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9
            error = [one.value.string_value for one in span.attributes if one.key == "error.type"]
            print(f"{seconds:9.3f} s  {indent}{span.name}", *error, flush=True)
            show(spans, span.span_id, f"{indent}  ")


with HTTPServer(("127.0.0.1", int(sys.argv[1]) if sys.argv[1:] else 4318), Collector) as server:
    print(f"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
