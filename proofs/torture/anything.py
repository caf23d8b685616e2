"""Requests with anything in them, by somebody who may ask, about conversations that exist."""

import json
from random import Random
from typing import Any
from urllib.parse import urlencode

from proofs.torture.api_stage import Stage
from proofs.torture.hostile_inputs import hostile_text
from proofs.torture.socket_client import NO_ANSWER, SocketClient

from bullpen.view.commands import ACTIONS
from bullpen.web.app import ROUTES
from bullpen.web.identity import Identity

VALUES: tuple[Any, ...] = (None, True, -1, 2**70, 1e308, "", "\x00", "../../etc/passwd", [], {}, [[]], {"a": {"b": []}})
LIKELY: tuple[Any, ...] = ("1", "2", "max", "sarah & max", "kim", ["1", "2"], "/state", "/drop 1", "my-own-id-1", 7)
NAMES = (
    *("text", "id", "sender", "turn", "turns", "member", "names", "task", "title", "person", "role"),
    *("after", "before", "limit", "q", "__proto__"),
)
HOSTILE = ("no-such", "%00", "..", "a" * 3000, "1")
BEGINNING = ("/c", "/api/conversations")
"""Each begins a conversation."""
WITHOUT_BODY = (*BEGINNING, "/open", "/close", "/archive", "/unarchive", "/revoke")
"""How those routes end that need none."""
FORMS = ("application/x-www-form-urlencoded", "application/json", "multipart/form-data; boundary=x", "text/plain", "")


class Anything:
    """Makes requests from a seed, and asks them of a server."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self._stage = stage
        self._seed = seed
        self._keys = self._made_keys()
        self.bodies = 0
        """How many requests had a body that is meant to be read."""

    def ask(self, requests: int) -> list[str]:
        """Ask, and return what made the server fail. A refusal is fine."""
        client = SocketClient(self._stage.served.place.port)
        failures = [self._failure(client, number) for number in range(requests)]
        client.close()
        return [failure for failure in failures if failure]

    def _made_keys(self) -> list[dict[str, str]]:
        """Return the headers of everybody who may ask: browsers and programs of the owner, a member and a viewer."""
        served = self._stage.served
        session = served.keys.redeem(served.keys.new_ticket()) or ""
        browser = {"Cookie": f"{served.place.cookie}={session}"}
        member, viewer = (
            {"Authorization": f"Bearer {served.keys.new_token(Identity(role=role, person='kim'))}"}
            for role in ("member", "viewer")
        )
        return [served.headers] * 4 + [browser] * 4 + [member, viewer]

    def _failure(self, client: SocketClient, number: int) -> str:
        random = Random(f"{self._seed} {number}")
        if number % 10 == 0:
            # An earlier request may have closed it.
            self._stage.open_again()
        routes = [route for route in ROUTES if number % 50 == 0 or not _leaves_one_open(route[1])]
        method, path, _ = random.choice(routes)
        url = path.format(**self._names(random))
        if random.random() < 1 / 2:
            url += f"?{urlencode({random.choice(NAMES): str(random.choice(VALUES + LIKELY))})}"
        place = self._stage.served.place
        headers = {"Host": place.hosts[0], "Origin": f"http://{place.hosts[0]}", **random.choice(self._keys)}
        body = None
        if method == "POST":
            is_api = path.startswith("/api/")
            body = _body(random, is_api=is_api)
            usual = "application/json" if is_api else FORMS[0]
            headers["Content-Type"] = usual if random.random() < 0.8 else random.choice(FORMS)
            self.bodies += not path.endswith(WITHOUT_BODY)
        status = client.ask(method, url, headers, body)
        is_bad = status == NO_ANSWER or status >= 500
        return f"{number}: {method} {url[:80]} with {body!r:.200} gave {status}" if is_bad else ""

    def _names(self, random: Random) -> dict[str, str]:
        """Return the names in an address, most of them of what exists."""
        known = {
            "id": (self._stage.talk,),
            "turn": ("1", "2"),
            "view": ("turn-1", "turn-2", "next-max", "next-sarah"),
            "sequence": ("1", "2", "3"),
            "number": ("1", "2"),
            "file": ("0", "1"),
            "format": ("md", "html", "json"),
            "action": tuple(ACTIONS),
            "name": ("style.css", "htmx.min.js"),
        }
        unknown = dict.fromkeys(("key", "ticket"), HOSTILE)
        chosen = {name: random.choice(values) for name, values in {**known, **unknown}.items()}
        return {name: random.choice(HOSTILE) if random.random() < 0.1 else value for name, value in chosen.items()}


def _body(random: Random, *, is_api: bool) -> bytes:
    """Return a body that is right in its form, most of the time."""
    text = hostile_text(random)
    values = (*VALUES, *LIKELY, text)
    value = {random.choice(NAMES): random.choice(values) for _ in range(random.randrange(4))}
    if random.random() < 1 / 2:
        likely = (
            {"text": text},
            {"task": text},
            {"turn": "1"},
            {"member": "max"},
            {"names": "max"},
            {"turns": ["2", "1"]},
        )
        value = random.choice(likely)
    body = (
        json.dumps(value).encode()
        if is_api
        else urlencode({name: str(given) for name, given in value.items()}, errors="surrogatepass").encode()
    )
    if random.random() < 0.8:
        return body
    return random.choice(
        [body[: random.randrange(len(body) + 1)], random.randbytes(40), b"[" * 5000, b"", b"\xff" * 100]
    )


def _leaves_one_open(path: str) -> bool:
    """Return whether a request leaves a conversation open: only a few of these are asked, for there is a limit."""
    return path in BEGINNING or path.endswith("/fork")
