"""The door for browsers after such a conversation: every page, answer and stream of it is fetched and kept."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
from proofs.torture.secret_stage import MEMBERS

from bullpen.web.app import ROUTES

SECONDS = 60
QUIET_SECONDS = 1.0
TURNS = range(1, 17)
"""More than there are: what is not there is an error page."""

# A bug of ours that meets a key: what the browser is told, and what the terminal says, must not hold it.
PROGRAM = """
import os
from bullpen.cli import main
from bullpen.store.sqlite import SqliteStore
search = SqliteStore.search
def broken(store, query, **options):
    key = os.environ['STRIPE_SECRET_KEY']
    if query == 'bug':
        raise ValueError('cannot use ' + key)
    return search(store, query, **options)
SqliteStore.search = broken
raise SystemExit(main(['serve', 'team.toml', '--trust', '--no-open', '--token-file', '../token']))
"""


class Pages:
    """Fetches, and keeps every answer in a file of its own."""

    def __init__(self, client: httpx.Client, folder: Path) -> None:
        self._client = client
        self._folder = folder
        self.paths: list[str] = []

    def get(self, path: str) -> httpx.Response:
        """Fetch and keep one answer."""
        return self._kept(path, self._client.get(path))

    def post(self, path: str, body: object = None) -> httpx.Response:
        """Do something, and keep the answer."""
        return self._kept(path, self._client.post(path, json=body))

    def stream(self, path: str) -> None:
        """Keep what a stream sends until it has nothing more to say."""
        pieces: list[bytes] = []
        timeout = httpx.Timeout(SECONDS, read=QUIET_SECONDS)
        with suppress(httpx.ReadTimeout), self._client.stream("GET", path, timeout=timeout) as answer:
            pieces.extend(answer.iter_bytes())
        self._keep(path, b"".join(pieces))

    def _kept(self, path: str, answer: httpx.Response) -> httpx.Response:
        self._keep(path, f"{answer.status_code} {answer.headers}\n".encode() + answer.content)
        return answer

    def _keep(self, path: str, data: bytes) -> None:
        self.paths.append(path)
        name = re.sub(r"[^a-z0-9]+", "-", path.lower())[:80]
        (self._folder / f"{len(self.paths):03} {name}").write_bytes(data)


def record_pages(folder: Path, env: dict[str, str]) -> list[str]:
    """Serve the conversation as `bullpen serve` does, fetch all that there is, and return the addresses of it."""
    kept = folder / "outputs" / "web"
    kept.mkdir()
    with _served(folder, env) as (url, token):
        # After a bug the server closes the connection, and the next request must not be on its way there.
        headers = {"Authorization": f"Bearer {token}", "Connection": "close"}
        with httpx.Client(base_url=url, headers=headers, timeout=SECONDS, trust_env=False) as client:
            pages = Pages(client, kept)
            conversation = client.get("/api/conversations").json()[0]["id"]
            _look(pages, conversation)
            _talk(pages, conversation)
            _look(pages, conversation)
            _err(pages, conversation)
    return pages.paths


def never_fetched(paths: list[str]) -> list[str]:
    """Return the routes that no address led to."""
    routes = [path for method, path, _ in ROUTES if method == "GET"]
    forms = {route: re.compile(re.sub(r"\{\w+\}", "[^/]+", route)) for route in routes}
    fetched = [path.partition("?")[0] for path in paths]
    return [route for route, form in forms.items() if not any(form.fullmatch(path) for path in fetched)]


@contextmanager
def _served(folder: Path, env: dict[str, str]) -> Iterator[tuple[str, str]]:
    output = folder / "outputs" / "serve"
    with output.open("wb") as file:
        program = [sys.executable, "-c", PROGRAM]
        process = subprocess.Popen(program, cwd=folder / "project", env=env, stdout=file, stderr=file)
        try:
            until = time.monotonic() + SECONDS
            while not (found := re.search(r"(http://\S+)/enter/", output.read_text(errors="replace"))):
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"the server did not start: {output.read_text(errors='replace')}")
                time.sleep(0.05)
            yield found[1], (folder / "token").read_text().strip()
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(SECONDS)


def _look(pages: Pages, conversation: str) -> None:
    """Fetch every page and every answer about a conversation."""
    here, one = f"/c/{conversation}", f"/api/conversations/{conversation}"
    paths = [
        "/",
        "/?q=key",
        "/api/search?q=key",
        "/api/openapi.json",
        "/api/conversations",
        "/api/me",
        "/api/sessions",
        "/people",
        "/usage",
        one,
        f"{one}/messages?limit=1000",
        f"{one}/queue",
        f"{one}/decisions",
        f"{one}/checks",
        f"{one}/results",
        f"{one}/changes/1/files",
        f"{here}/results",
        "/metrics",
    ]
    # A token may not read a team file: only a browser of the owner may.
    paths += ["/teams", "/teams/some-key", "/sidebar", f"{here}/messages/1"]
    paths += re.findall(r'"(/static/[^"]+)"', pages.get(here).text)
    paths += [f"{here}/complete?before=/", f"{here}/complete?before=@"]
    paths += [f"{here}?at=3", f"{here}/older?before=8", f"{here}/newer?after=0", f"{here}/timeline"]
    paths += [
        f"{here}/changes",
        f"{here}/changes/1/0",
        f"{here}/changes/1/0/comment?row=1",
        f"{one}/changes?patch=true",
    ]
    paths += [f"{one}/turns/1/patch"]
    paths += [f"{here}/export/{name}" for name in ("md", "html", "json", "nothing")]
    for turn in TURNS:
        paths += [f"{here}/steps/{turn}", f"{here}/prompt/turn-{turn}"]
    paths += [f"{here}/prompt/next-{member}" for member in MEMBERS]
    paths += [f"{here}/prompt/turn-1?beside=turn-3", f"{here}/prompt/turn-2?beside=next-tool"]
    for path in paths:
        pages.get(path)


def _talk(pages: Pages, conversation: str) -> None:
    """Let those who fail do so while somebody watches."""
    here, one = f"/c/{conversation}", f"/api/conversations/{conversation}"
    pages.post(f"{one}/open")
    for member in ("cody", "tool", "quitter", "hanger"):
        pages.post(f"{one}/messages", {"text": f"Please. [NEXT: {member}]"})
        if member == "hanger":
            pages.stream(f"{one}/events?after=0")
            pages.post(f"{one}/cancel", {})
        _wait(pages, one)
        pages.get(here)
        pages.post(f"{one}/{'retry' if member == 'tool' else 'skip'}", {})
        _wait(pages, one)
    pages.stream(f"{one}/watch?after=0")
    pages.stream("/attention")
    pages.stream(f"{here}/stream?after=0")


def _wait(pages: Pages, one: str) -> None:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        state = pages.get(one).json()
        if not state["queue"] and not any(member.get("working") for member in state["members"]):
            return
        time.sleep(0.1)
    raise RuntimeError("the conversation in the browser does not come to rest")


def _err(pages: Pages, conversation: str) -> None:
    """Do what does not work."""
    here, one = f"/c/{conversation}", f"/api/conversations/{conversation}"
    for path in ("/nothing", "/c/nothing", "/enter/nothing", "/api/nothing", "/?q=bug", "/api/search?q=bug"):
        pages.get(path)
    for path, body in ((f"{one}/messages", {}), (f"{one}/ask", {"names": "nobody"}), (f"{one}/drop", {"turn": "99"})):
        pages.post(path, body)
    pages.post(f"{here}/do/nothing")
    pages.post(f"{here}/messages")
