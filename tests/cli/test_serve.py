"""`bullpen serve`, as a person starts it."""

import argparse
import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests import forked

from bullpen.cli.entrance import Entrance
from bullpen.cli.serve_access import command_for_address
from bullpen.testing.site import button_of
from bullpen.testing.stage import write_team

Bullpen = Callable[..., "subprocess.CompletedProcess[str]"]


def variables(folder: Path) -> dict[str, str]:
    home = {"HOME": str(folder), "BULLPEN_HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "state")}
    return {**home, "PATH": os.environ["PATH"], "LANG": os.environ["LANG"], "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Let commands find the server of the test."""
    return variables(tmp_path)


def serve(folder: Path, *options: str) -> "subprocess.Popen[str]":
    return forked.start(
        [sys.executable, "-m", "bullpen", "serve", "--no-open", *options],
        cwd=folder,
        env=variables(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Under nohup we ignore hang-ups, which programs inherit.
        start_new_session=True,
        preexec_fn=partial(signal.signal, signal.SIGHUP, signal.SIG_DFL),
    )


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_prints_an_address_that_works_once_and_ends_when_told(stop: signal.Signals, tmp_path: Path) -> None:
    team = write_team(tmp_path, {"max": [{"hang": True}]})
    with serve(tmp_path, str(team), "--trust", "--token-file", "token") as process:
        assert process.stdout is not None
        assert "the team “stage”" in process.stdout.readline()
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/enter/[\w-]{43}", url)
        with httpx.Client() as browser:
            assert browser.post(url, headers=button_of(url)).status_code == 303
            assert browser.get(url.partition("/enter")[0]).status_code == 200
        assert httpx.get(url).status_code == 401
        assert process.stdout.readline() == "For another address: bullpen serve --new-address\n"
        token_file = tmp_path / "token"
        assert token_file.stat().st_mode & 0o777 == 0o600
        api = httpx.Client(
            base_url=f"{url.partition('/enter')[0]}/api",
            headers={"Authorization": f"Bearer {token_file.read_text().strip()}"},
        )
        with api:
            begun = api.post("/conversations").json()["id"]
            api.post(f"/conversations/{begun}/messages", json={"text": "Work."})
            # Somebody watches, and an agent works, when it ends.
            with api.stream("GET", f"/conversations/{begun}/watch?after=0") as watching:
                assert watching.status_code == 200
                process.send_signal(stop)
                watching.read()
        out, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, "")
    assert "Closing" in out
    # It is not a terminal, and whoever reads a log must not find another way in.
    assert "/enter/" not in out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["no.toml"], "There is no file no.toml"),
        (["team.toml"], "is not trusted"),
        (["--trust", "--host", "0.0.0.0"], "means all addresses"),
        (["--trust", "--host", "no.such.host.invalid"], "is not an address of this machine"),
        (["--trust", "--tls-cert", "cert.pem"], "--tls-cert and --tls-key go together"),
        (["--trust", "--tls-cert", "no.pem", "--tls-key", "no.key"], "No such file"),
    ],
)
def test_what_does_not_work_is_said_in_a_sentence(
    options: list[str], said: str, tmp_path: Path, bullpen: Bullpen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", asked_nobody(socket.getaddrinfo))
    write_team(tmp_path, {"max": [{"say": "Hi."}]})

    done = bullpen("serve", "--no-open", *options)

    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def asked_nobody(getaddrinfo: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that finds addresses without asking the network."""

    def found(host: str, *args: Any, **keys: Any) -> Any:
        if host.endswith(".invalid"):
            raise socket.gaierror("Name or service not known")
        return getaddrinfo(host, *args, **keys)

    return found


def test_a_member_in_a_pool_needs_a_cluster(tmp_path: Path, bullpen: Bullpen) -> None:
    team = write_team(tmp_path, {"max": [{"say": "Hello."}]})
    team.write_text(team.read_text().replace('name = "max"', 'name = "max"\npool = "gpu-box"'))

    done = bullpen("serve", "--no-open", str(team), "--trust")

    assert done.returncode == 1
    assert "max runs on workers of the pool 'gpu-box'" in done.stderr
    assert "`bullpen serve --cluster`" in done.stderr


def test_a_port_that_is_taken_is_said(bullpen: Bullpen) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = bullpen("serve", "--no-open", "--port", str(taken.getsockname()[1]))

    assert "Choose another --port." in done.stderr


@pytest.mark.foreign
def test_another_address_is_served_with_a_certificate(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("THERE IS NO OPENSSL ON THIS SYSTEM, so there is no certificate to serve with")
    made = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run([*made, "-days", "2", "-subj", "/CN=localhost"], cwd=tmp_path, check=True, capture_output=True)
    with serve(tmp_path, "--tls-cert", "cert.pem", "--tls-key", "key.pem") as process:
        assert process.stdout is not None
        process.stdout.readline()
        url = process.stdout.readline().strip()
        assert url.startswith("https://127.0.0.1:")
        # The certificate is our own, so nobody vouches for it.
        with httpx.Client(verify=False) as browser:
            entered = browser.post(url, headers=button_of(url))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)

    assert entered.status_code == 303
    assert "; secure" in entered.headers["set-cookie"].lower()


def test_without_a_team_file_what_is_there_can_be_read(tmp_path: Path) -> None:
    with serve(tmp_path) as process:
        assert process.stdout is not None
        assert "no team file" in process.stdout.readline()
        url = process.stdout.readline().strip()
        with httpx.Client(follow_redirects=True) as browser:
            assert "No conversations yet" in browser.post(url, headers=button_of(url)).text
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)

    assert process.returncode == 0


BROKEN = """
import os
from bullpen.cli import main
from bullpen.store.sqlite import SqliteStore
def broken(*_, **__):
    raise ValueError('cannot use ' + os.environ['SHOP_PASSWORD'] + ' \\x1b[31m')
SqliteStore.search = broken
raise SystemExit(main(['serve', '--no-open', '--token-file', 'token']))
"""


def test_a_bug_is_said_where_it_runs_without_keys_or_escapes(tmp_path: Path) -> None:
    process = forked.start(
        [sys.executable, "-c", BROKEN],
        cwd=tmp_path,
        env={**variables(tmp_path), "SHOP_PASSWORD": "correct-horse-battery"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        url = process.stdout.readline().strip().partition("/enter")[0]
        headers = {"Authorization": f"Bearer {(tmp_path / 'token').read_text().strip()}"}
        answer = httpx.get(f"{url}/api/search?q=x", headers=headers)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)

    assert (answer.status_code, answer.json()) == (
        500,
        {"error": "This is a bug in bullpen, sorry. The terminal that runs it shows more."},
    )
    assert "ValueError: cannot use [secret] \ufffd[31m" in errors
    assert "in broken" in errors
    assert "correct-horse-battery" not in errors


def test_a_restart_is_at_the_same_address_and_knows_its_browsers(tmp_path: Path) -> None:
    team = write_team(tmp_path, {"max": [{"say": "Hi."}]})
    places: list[str] = []
    answers: list[int] = []
    with httpx.Client() as browser:
        for _ in range(2):
            with serve(tmp_path, str(team), "--trust") as process:
                assert process.stdout is not None
                process.stdout.readline()
                place, _, ticket = process.stdout.readline().strip().partition("/enter/")
                if not places:
                    browser.post(f"{place}/enter/{ticket}", headers=button_of(place))
                places.append(place)
                answers.append(browser.get(place).status_code)
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=20)

    assert places[0] == places[1]
    assert answers == [200, 200]


BROWSER = """#!{python}
import json, os, pathlib, stat, sys, time
page = pathlib.Path(sys.argv[1].removeprefix("file://"))
lines = []
for place in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    try:
        lines.append(place.read_bytes().decode(errors="replace"))
    except OSError:
        pass
seen = {{
    "arguments": sys.argv,
    "lines": lines,
    "page": page.read_text(),
    "path": str(page),
    "modes": [stat.S_IMODE(place.stat().st_mode) for place in (page, page.parent)],
}}
draft = pathlib.Path("seen.draft")
draft.write_text(json.dumps(seen))
draft.rename("seen.json")
"""


def serve_with_browser(folder: Path) -> "subprocess.Popen[str]":
    """Serve with a browser that writes down everything it was given, and every command line on this machine."""
    browser = folder / "browser"
    browser.write_text(BROWSER.format(python=sys.executable))
    browser.chmod(0o700)
    return subprocess.Popen(
        [sys.executable, "-m", "bullpen", "serve"],
        cwd=folder,
        env={**variables(folder), "BROWSER": f"{browser} %s"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def seen_by_browser(folder: Path) -> dict[str, Any]:
    while not (folder / "seen.json").exists():
        time.sleep(0.01)
    found: dict[str, Any] = json.loads((folder / "seen.json").read_text())
    return found


def test_the_way_in_is_on_no_command_line(tmp_path: Path) -> None:
    with serve_with_browser(tmp_path) as process:
        seen = seen_by_browser(tmp_path)
        (url,) = set(re.findall(r"http://127[^\"]+/enter/[\w-]{43}", seen["page"]))
        ticket = url.rpartition("/")[2]
        assert re.fullmatch(r"file:///[^?#]+/bullpen-\w+/bullpen\.html", seen["arguments"][1])
        assert any("serve" in line for line in seen["lines"])
        assert not [line for line in seen["lines"] if ticket in line or "/enter/" in line]
        assert seen["modes"] == [0o600, 0o700]
        assert Path(seen["path"]).exists()
        assert httpx.post(url, headers=button_of(url)).status_code == 303
        assert not Path(seen["path"]).parent.exists()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_a_way_in_that_nobody_took_is_gone_at_the_end(tmp_path: Path) -> None:
    with serve_with_browser(tmp_path) as process:
        seen = seen_by_browser(tmp_path)
        assert process.stdout is not None
        process.stdout.readline()
        # Another browser was let in, so the file is still there.
        url = process.stdout.readline().strip()
        assert httpx.post(url, headers=button_of(url)).status_code == 303
        assert Path(seen["path"]).exists()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)

    assert not Path(seen["path"]).parent.exists()


def test_where_there_are_snaps_the_way_in_is_where_their_browsers_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("bullpen.cli.entrance.SNAPS", tmp_path)
    monkeypatch.setattr("webbrowser.open", opened.append)

    with Entrance() as entrance:
        entrance.open("http://127.0.0.1:1/enter/x")
        page = Path(opened[0].removeprefix("file://"))
        assert page.parent.parent == tmp_path
        assert not page.parent.name.startswith(".")
        assert [page.stat().st_mode & 0o777, page.parent.stat().st_mode & 0o777] == [0o600, 0o700]
        assert 'href="http://127.0.0.1:1/enter/x#open"' in page.read_text()

    assert list(tmp_path.iterdir()) == []


def test_the_command_for_another_address_names_the_database(tmp_path: Path) -> None:
    options = argparse.Namespace(cluster=None, db=tmp_path / "my own.db")
    assert command_for_address(options).endswith(f" serve --new-address --db '{tmp_path}/my own.db'")


@pytest.fixture
def told(bullpen: Bullpen) -> Callable[..., str]:
    """Run `bullpen serve` with options, to its end, and return what it says."""

    def told(*options: str) -> str:
        done = bullpen("serve", *options)
        return done.stdout + done.stderr

    return told


def test_another_terminal_gives_an_address_and_takes_access_away(tmp_path: Path, told: Callable[..., str]) -> None:
    assert "No server is running" in told("--new-address")
    assert "No browser is signed in" in told("--people")
    with serve(tmp_path) as process, httpx.Client(headers={"User-Agent": "Macintosh; Mac OS X Safari/1"}) as browser:
        assert process.stdout is not None
        process.stdout.readline()
        here = process.stdout.readline().strip().partition("/enter/")[0]
        address = told("--new-address").strip()
        assert address.startswith(f"{here}/enter/")
        entered = browser.post(address, headers=button_of(address))
        assert [entered.status_code, browser.get(here).status_code, browser.get(address).status_code] == [303, 200, 401]
        _, row, unused = told("--people").splitlines()
        assert re.fullmatch(r"[0-9a-f]{12}  owner  owner  an address that is not used yet  20.*  20.*", unused)
        assert re.fullmatch(r"[0-9a-f]{12}  owner  owner  Safari on macOS +20.*  20.*", row)
        assert "Nobody who has access has the id" in told("--revoke", "abc")
        assert browser.get(here).status_code == 200
        assert told("--revoke", row.split()[0]) == f"Revoked: {row.split()[0]}\n"
        assert browser.get(here).status_code == 401
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert "No server is running" in told("--new-address")


def test_behind_a_proxy_people_are_given_its_address(tmp_path: Path, told: Callable[..., str]) -> None:
    with serve(tmp_path, "--public", "https://127.0.0.1:1") as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert process.stdout.readline().strip().startswith("https://127.0.0.1:1/enter/")
        # It cannot be reached from here, and the server can.
        assert told("--new-address").strip().startswith("https://127.0.0.1:1/enter/")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert "No server is running" in told("--new-address")


def test_a_terminal_shows_the_next_address_when_one_was_used(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = forked.start(
        [sys.executable, "-m", "bullpen", "serve", "--no-open"],
        cwd=tmp_path,
        env=variables(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    try:
        with os.fdopen(ours, "rb", buffering=0) as terminal, process:
            lines = (line.decode().strip() for line in iter(terminal.readline, b""))
            addresses = (line for line in lines if "/enter/" in line)
            first = next(addresses)
            assert httpx.post(first, headers=button_of(first)).status_code == 303
            second = next(addresses)
            assert second != first
            assert httpx.post(second, headers=button_of(second)).status_code == 303
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)
    finally:
        process.kill()
