"""Strangers at the door for browsers: every route with every Host, Origin and key, and requests made of anything."""

import asyncio
import json
import tempfile
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import httpx
from tests.torture.hostile_inputs import hostile_text
from tests.torture.outcome import Outcome, Size, Torture
from tests.web.test_guard import HOSTS, KEYS, ORIGINS, OWN_HOST, address, expected, headers_for, server

from bullpen.web.app import ROUTES

REQUESTS: dict[Size, int] = {"small": 400, "full": 20_000}
"""Requests of somebody who may ask, with anything in them."""
VALUES: tuple[Any, ...] = (None, True, -1, 2**70, 1e308, "", "\x00", "../../etc/passwd", [], {}, [[]], {"a": {"b": []}})
NAMES = (
    "text",
    "id",
    "sender",
    "turn",
    "turns",
    "member",
    "names",
    "task",
    "after",
    "before",
    "limit",
    "q",
    "__proto__",
)


def run(size: Size, seed: int) -> Outcome:
    """Knock in every way."""
    return asyncio.run(_knock(REQUESTS[size], seed, is_guarded=True))


def run_with_fault(seed: int) -> Outcome:
    """Knock where nobody guards."""
    return asyncio.run(_knock(0, seed, is_guarded=False))


async def _knock(requests: int, seed: int, *, is_guarded: bool) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        async with server(Path(folder)) as (guard, keys):
            app = guard if is_guarded else guard.app
            session = keys.redeem(keys.new_ticket()) or ""
            transport = httpx.ASGITransport(app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{OWN_HOST}") as client:
                failures = []
                for (method, path, _), host, origin, key in product(ROUTES, HOSTS, ORIGINS, KEYS):
                    # What an earlier answer set must not let this one in.
                    client.cookies.clear()
                    headers = headers_for(keys, session, host, origin, key)
                    body = (b"{}" if path.startswith("/api/") else b"text=hi") if method == "POST" else None
                    request = client.build_request(method, address(path, keys), headers=headers, content=body)
                    answer = (await client.send(request)).status_code
                    wanted = expected(method, path, host, origin, key)
                    if answer != wanted:
                        failures.append(
                            f"{method} {path}, Host {host}, Origin {origin}, key {key}: {answer}, not {wanted}"
                        )
                        if not is_guarded:
                            break
                failures += [
                    found for number in range(requests) if (found := await _fuzz(client, keys.token, seed, number))
                ]
    tried = len(ROUTES) * len(HOSTS) * len(ORIGINS) * len(KEYS)
    return Outcome(
        tried=tried + requests,
        unit="requests",
        failures=tuple(failures),
        figures={"routes": len(ROUTES), "from strangers and others": tried, "made of anything": requests},
    )


async def _fuzz(client: httpx.AsyncClient, token: str, seed: int, number: int) -> str:
    """Ask for something with anything in it. A refusal is fine; failing is not."""
    random = Random(f"{seed} {number}")
    method, path, _ = random.choice([route for route in ROUTES if route[0] == "POST" or "{" in route[1]])
    names = {
        name: random.choice(["no-such", "%00", "..", "a" * 3000, "1"])
        for name in ("id", "turn", "view", "key", "sequence")
    }
    url = path.format(**names, ticket="x", format="md", action="cancel", name="no.css")
    headers = {"Authorization": f"Bearer {token}", "Origin": f"http://{OWN_HOST}", "Host": OWN_HOST}
    query = {random.choice(NAMES): str(random.choice(VALUES))}
    answer = await client.request(method, url, headers=headers, params=query, content=_body(random))
    return f"{number}: {method} {url[:80]} gave {answer.status_code}" if answer.status_code >= 500 else ""


def _body(random: Random) -> bytes:
    value: Any = {
        random.choice(NAMES): random.choice([*VALUES, hostile_text(random)]) for _ in range(random.randrange(4))
    }
    body = json.dumps(value).encode()
    return random.choice([body, body[: random.randrange(len(body) + 1)], random.randbytes(40), b"[" * 5000, b""])


TORTURE = Torture(
    name="strangers at the web's door",
    does="Every route is asked with every kind of Host, Origin and key; then somebody who may ask sends anything.",
    promise="each gets exactly the answer that is meant for them, and nothing makes the server fail.",
    run=run,
    fault="nobody guards the door.",
    run_with_fault=run_with_fault,
    order=80,
)
