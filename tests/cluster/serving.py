"""Nodes that serve people, each a process of its own: `bullpen serve --cluster`."""

from pathlib import Path
from typing import Any

import httpx
from tests.cluster.processes import Processes, Started

COMMAND = "bullpen"


class ServingNode:
    """One that runs, and somebody who asks it with the owner's token."""

    def __init__(self, process: Started, url: str, token: str) -> None:
        self.process = process
        self.url = url
        self.token = token
        self.api = f"{url}/api/conversations"

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    # Without certificates, which take long to read: it speaks HTTP.
    def client(self, **others: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, headers=self.headers, timeout=None, verify=False, **others)


def start_node(processes: Processes, url: str, name: str, *options: str, **environment: str) -> ServingNode:
    """Start a node, and wait until it serves."""
    token_file = Path(processes.folder / f"{name}.token")
    token_file.unlink(missing_ok=True)
    process = processes.start(
        *(COMMAND, "serve", *options, "--cluster", url, "--no-open", "--trust", "--token-file", str(token_file)),
        BULLPEN_HOME=str(processes.folder / name),
        **environment,
    )
    while "/enter/" not in (line := process.line()):
        assert line, (processes.folder / "log").read_text()[-3000:]
    return ServingNode(process, line.strip().partition("/enter/")[0], token_file.read_text().strip())
