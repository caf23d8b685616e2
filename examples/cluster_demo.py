"""`make cluster`: two nodes, two workers and PostgreSQL on this machine; a conversation survives the death of its node.

Agents follow scripts, so no account is needed. Everything is on loopback, and everything that was started is ended.
"""

import argparse
import ctypes
import json
import os
import secrets
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from bullpen.testing.postgres import PostgresServer, programs

WAIT_SECONDS = 90.0
PR_SET_PDEATHSIG = 1
# Loaded here, since little can be done between fork and exec.
_prctl = getattr(ctypes.CDLL(None), "prctl", None)
NO_SERVER = "There is no PostgreSQL here. On Debian: apt-get install postgresql, or set BULLPEN_TEST_POSTGRES."
FIRST_WORDS = "Please find out why the tests are slow, and make them fast."
STORY = {
    "max": [
        [
            "I look at what the tests do.",
            "Most of them wait for the model.",
            "[NEXT: sarah] Can you run it on the GPU?",
        ],
        ["It works. The tests take 8 seconds now, and took 3 minutes before. [NEXT: kim]"],
    ],
    "sarah": [
        [
            "I load the model.",
            "The first batch is through.",
            "Half of them are through.",
            "Nearly all of them are through.",
            "Done: it is 20 times as fast. [NEXT: max]",
        ],
    ],
}
POOLS = {"max": "desk", "sarah": "gpu-box"}
LAST_WORDS = "took 3 minutes before"
PLAYER = """\
#!/bin/sh
for script in {scripts}/*.json; do
  mv "$script" "$script.played"
  exec {python} -m bullpen.testing.agent --as text --script "$script.played"
done
"""


class Stage:
    """The folders, the files and the processes of the demo."""

    def __init__(self, folder: Path, url: str, pace: float) -> None:
        self.folder = folder
        self._url = url
        self._pace = pace
        self.processes: list[subprocess.Popen[str]] = []

    def write(self) -> None:
        """Write the team file, the workers' files, and what the agents will say."""
        members = ['name = "many machines"\nhand_over_note = false\n[[member]]\nname = "kim"\n']
        for name, turns in STORY.items():
            place = self.folder / POOLS[name]
            scripts = place / "scripts"
            scripts.mkdir(parents=True)
            for number, sentences in enumerate(turns):
                steps = [step for text in sentences for step in ({"sleep": self._pace}, {"say": f"{text} "})]
                (scripts / f"{number}.json").write_text(json.dumps(steps), encoding="utf-8")
            player = place / name
            words = {"scripts": shlex.quote(str(scripts)), "python": shlex.quote(sys.executable)}
            player.write_text(PLAYER.format(**words), encoding="utf-8")
            player.chmod(0o700)
            command = json.dumps([str(player)])
            members.append(f'[[member]]\nname = "{name}"\npool = "{POOLS[name]}"\ncommand = {command}\n')
            (place / "worker.toml").write_text(
                f'name = "{POOLS[name]}"\ncommands = [{command}]\n[folders]\nwork = {json.dumps(str(place))}\n',
                encoding="utf-8",
            )
        (self.folder / "team.toml").write_text("\n".join(members), encoding="utf-8")

    def start(self, name: str, *words: str) -> "Lines":
        """Start a command of bullpen."""
        home = self.folder / name
        environment = {
            **os.environ,
            "BULLPEN_CLUSTER": self._url,
            "BULLPEN_HOME": str(home / "data"),
            "XDG_STATE_HOME": str(home / "state"),
        }
        with (self.folder / f"{name}.log").open("a") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "bullpen", *words],
                env=environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                encoding="utf-8",
                # Ctrl-C is for the demo, which then ends them in order.
                start_new_session=True,
                preexec_fn=end_with_demo,
            )
        self.processes.append(process)
        return Lines(name, process, self.folder / f"{name}.log")

    def end(self) -> None:
        """End everything that was started."""
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        for process in self.processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Lines:
    """What a process prints, each line shown with its name."""

    def __init__(self, name: str, process: subprocess.Popen[str], log: Path) -> None:
        self.process = process
        self._name = name
        self._log = log
        self._lines: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def until(self, part: str) -> str:
        """Wait for a line with these words."""
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            for line in list(self._lines):
                if part in line:
                    return line
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise SystemExit(f"{self._name} did not get as far as {part!r}:\n{self._log.read_text()[-2000:]}")

    def _read(self) -> None:
        if self.process.stdout is not None:
            for line in self.process.stdout:
                self._lines.append(line)
                # The addresses of nodes are shown where they are wanted.
                if line.strip() and not self._name.startswith("node"):
                    show(self._name, line.rstrip())


class Node:
    """A node that serves, asked as a program does."""

    def __init__(self, stage: Stage, name: str, *words: str) -> None:
        token = stage.folder / f"{name}.token"
        self.lines = stage.start(name, "serve", *words, "--no-open", "--trust", "--token-file", str(token))
        self.entrance = self.lines.until("/enter/").strip()
        self.url = self.entrance.partition("/enter/")[0]
        self._token = token.read_text(encoding="utf-8").strip()

    def ask(self, path: str, given: object = None) -> Any:
        """Return what the API answers."""
        with self.open(path, given) as answer:
            return json.load(answer)

    def open(self, path: str, given: object = None) -> Any:
        """Ask the API: a POST if something is given."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        data = None if given is None else json.dumps(given).encode()
        request = urllib.request.Request(f"{self.url}/api/conversations{path}", data=data, headers=headers)  # noqa: S310
        return urllib.request.urlopen(request, timeout=WAIT_SECONDS)  # noqa: S310


class Watcher:
    """Somebody who watches a conversation at one node, live; the connection is made again when it ends."""

    def __init__(self, node: Node, conversation: str) -> None:
        self._node = node
        self._path = f"/{conversation}/events"
        self._shown: set[tuple[str, str]] = set()
        self.heard: list[str] = []
        threading.Thread(target=self._watch, daemon=True).start()

    def until(self, words: str) -> None:
        """Wait until somebody says this."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not any(words in text for text in self.heard):
            if time.monotonic() > deadline:
                raise SystemExit(f"Nobody said {words!r} within {WAIT_SECONDS:.0f} s.")
            time.sleep(0.02)

    def _watch(self) -> None:
        while True:
            try:
                with self._node.open(self._path) as stream:
                    for line in stream:
                        if line.startswith(b"data: "):
                            self._hear(json.loads(line[6:]).get("event") or {})
            except OSError:
                pass
            time.sleep(0.2)

    def _hear(self, event: dict[str, Any]) -> None:
        inner = event.get("event")
        if event.get("type") == "turn_event" and isinstance(inner, dict) and inner.get("event") == "text":
            said = (str(event.get("member")), str(inner.get("text", "")).strip())
            # A node that takes a turn over hears it from its beginning.
            if said[1] and said not in self._shown:
                self._shown.add(said)
                self.heard.append(said[1])
                show("watching node 2", f"{said[0]}: {said[1]}")


def end_with_demo() -> None:
    """In a new process: end when the demo is killed, where the system can do that."""
    if _prctl is not None:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def show(who: str, text: str) -> None:
    """Print a line."""
    print(f"{who:>16} | {text}", flush=True)


@contextmanager
def database() -> Iterator[str]:
    """Yield the address of an empty database, on a server of our own or on the one in BULLPEN_TEST_POSTGRES."""
    existing = os.environ.get("BULLPEN_TEST_POSTGRES", "")
    if not existing and programs() is None:
        raise SystemExit(NO_SERVER)
    with ExitStack() as stack:
        server = existing or stack.enter_context(PostgresServer()).url()
        name = sql.Identifier(f"bullpen_demo_{secrets.token_hex(6)}")
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(name))
        try:
            yield f"{server.partition('?')[0].rpartition('/')[0]}/{name.as_string().strip(chr(34))}"
        finally:
            with psycopg.connect(server, autocommit=True) as connection:
                connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


def wait_for_person(fast: bool, text: str) -> None:
    """Wait for Enter, where somebody is there to press it."""
    if not fast and sys.stdin.isatty():
        input(f"\n{text} ")


def play(stage: Stage, *, fast: bool) -> None:
    """Tell the story."""
    show("demo", "Starting two nodes and two workers.")
    first = Node(stage, "node 1", "team.toml")
    second = Node(stage, "node 2")
    show("demo", f"Node 1 is at {first.url}, node 2 at {second.url}.")
    for pool in POOLS.values():
        file = stage.folder / pool / "worker.toml"
        stage.start(pool, "worker", "--pool", pool, str(file)).until("Joined")
    conversation = str(first.ask("", {})["id"])
    show("demo", f"Node 1 has begun the conversation {conversation}, and owns it. To watch it at node 2 in a browser:")
    print(f"\n    {second.entrance}\n", flush=True)
    wait_for_person(fast, "Enter lets it begin.")
    watcher = Watcher(second, conversation)
    show("kim at node 2", FIRST_WORDS)
    second.ask(f"/{conversation}/messages", {"text": FIRST_WORDS})
    watcher.until("The first batch is through.")

    show("demo", "Killing node 1, which owns the conversation, while sarah is at work on gpu-box: kill -9.")
    first.lines.process.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    first.lines.process.wait()
    watcher.until("Half of them are through.")
    show("demo", f"Node 2 owns it now: sarah is heard again {time.monotonic() - killed:.1f} s after the kill.")
    watcher.until(LAST_WORDS)
    tell_end(stage, second, conversation)
    wait_for_person(fast, "Enter ends everything that was started.")


def tell_end(stage: Stage, node: Node, conversation: str) -> None:
    """Say what was stored, and how often each agent was started."""
    deadline = time.monotonic() + WAIT_SECONDS
    while len(messages := node.ask(f"/{conversation}/messages")) < 1 + sum(map(len, STORY.values())):
        if time.monotonic() > deadline:
            raise SystemExit(f"Only {len(messages)} messages were stored.")
        time.sleep(0.1)
    speakers = [one["message"]["speaker"]["roleId"] for one in messages]
    played = {name: len(list((stage.folder / POOLS[name] / "scripts").glob("*.played"))) for name in STORY}
    if any(played[name] != speakers.count(name) for name in STORY):
        raise SystemExit(f"Replies of {', '.join(speakers)}, but the agents were started as often as this: {played}.")
    show("demo", f"Stored, each once: {', '.join(speakers)}. Nobody typed anything twice, and no turn ran twice:")
    for name in STORY:
        times = "once" if played[name] == 1 else f"{played[name]} times"
        show("demo", f"{name} was started {times}, and replied {times}.")


def main() -> None:
    """Play it, and end what was started, whatever happens."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="leave out the pauses that make it pleasant to watch")
    fast = parser.parse_args().fast
    # It ends as by Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    show("demo", "Starting PostgreSQL.")
    try:
        with tempfile.TemporaryDirectory(prefix="bullpen-cluster-") as folder, database() as url:
            stage = Stage(Path(folder), url, 0.4 if fast else 2.0)
            stage.write()
            try:
                play(stage, fast=fast)
            finally:
                show("demo", "Ending everything that was started.")
                stage.end()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    show("demo", "Done.")


if __name__ == "__main__":
    main()
