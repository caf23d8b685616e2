"""An OTLP collector on loopback that keeps the spans it is sent, or is as bad as wanted."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Collector:
    """What was sent."""

    def __init__(self) -> None:
        self.status = 200
        self.answers = threading.Event()
        """Not set: it takes requests, and does not answer."""
        self.answers.set()
        self.url = ""
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        self.was_asked = threading.Event()

    @property
    def spans(self) -> list[Span]:
        return [
            span
            for one in self.requests
            for group in one.resource_spans
            for scope in group.scope_spans
            for span in scope.spans
        ]

    @property
    def resource(self) -> dict[str, Any]:
        return values(self.requests[0].resource_spans[0].resource.attributes)

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def one(self, name: str) -> Span:
        (span,) = self.named(name)
        return span

    def inside(self, outer: Span) -> list[str]:
        return [span.name for span in self.spans if span.parent_span_id == outer.span_id]

    @property
    def everything(self) -> str:
        return "\n".join(map(str, self.requests))


def values(attributes: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """Listen until the context is left."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.was_asked.set()
            collector.answers.wait()
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            if collector.status == 200:
                collector.headers.append({name.lower(): value for name, value in self.headers.items()})
                collector.requests.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(collector.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, *_: object) -> None:
            """Whoever asked has left."""

    with Server(("127.0.0.1", 0), Handler) as server:
        collector.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield collector
        finally:
            collector.answers.set()
            server.shutdown()
            thread.join()
