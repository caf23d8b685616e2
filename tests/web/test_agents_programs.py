"""An agent's program that has found a key: it changes nothing here, and does not come in."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bullpen.agents import process_tree
from bullpen.testing.site import site
from bullpen.web.guard import FROM_AGENT

SENDS = """
import http.client, sys
_, port, method, path, token = sys.argv
line = http.client.HTTPConnection("127.0.0.1", int(port))
for _ in range(2):
    body = b"" if method == "POST" else None
    line.request(method, path, body, {"Authorization": f"Bearer {token}"})
    answer = line.getresponse()
    print(answer.status, answer.read().decode().strip(), flush=True)
"""
STARTS = "import subprocess, sys; subprocess.run([sys.executable, '-c', {!r}, *sys.argv[1:]], env={{}})"
REFUSED = [f'403 {{"error":"{FROM_AGENT.text}"}}'] * 2

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the system does not say whose a connection is")


async def told(tmp_path: Path, program: str, method: str, path: str, **variables: str) -> list[str]:
    """Return what a program hears that has the owner's token, twice on one connection."""
    async with site(tmp_path) as served:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", program, served.url.rpartition(":")[2], method, path, served.keys.token),
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
        )
        heard, _ = await asyncio.wait_for(process.communicate(), 60)
    return heard.decode().splitlines()


async def test_an_agents_program_changes_nothing(tmp_path: Path) -> None:
    heard = await told(tmp_path, SENDS, "POST", "/api/invitations", **{process_tree.TURN_VARIABLE: "turn"})

    assert heard == REFUSED


async def test_nor_does_one_that_it_starts_without_its_environment(tmp_path: Path) -> None:
    starts = STARTS.format(SENDS)
    heard = await told(tmp_path, starts, "POST", "/api/tokens", **{process_tree.TURN_VARIABLE: "turn"})

    assert heard == REFUSED


async def test_it_does_not_come_in_with_an_address(tmp_path: Path) -> None:
    heard = await told(tmp_path, SENDS, "GET", "/enter/ticket", **{process_tree.TURN_VARIABLE: "turn"})

    assert heard == [f"403 {FROM_AGENT.text}"] * 2


async def test_other_programs_are_heard(tmp_path: Path) -> None:
    heard = await told(tmp_path, SENDS, "POST", "/api/invitations")

    assert [line[:3] for line in heard] == ["400", "400"]
