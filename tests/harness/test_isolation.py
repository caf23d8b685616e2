"""A test that reaches out of its own folder, leaves a process or leaves the machine fails, and says with what."""

import os
import sys
from pathlib import Path

import pytest
from tests.harness.isolation import PROGRAMS, TRAP, TRAPS
from tests.harness.nested import ROOT, run_tests

HEAD = """
import os, socket, sqlite3, subprocess
from contextlib import suppress
from pathlib import Path
HOME = Path(os.environ["BULLPEN_TEST_RUN"], "home")
"""
TEST = """
def test_{name}(tmp_path):
    with suppress(OSError):
        {body}
"""
BAD = {
    "a file in nobody's home": "(HOME / 'a.txt').write_text('x')",
    "a folder in nobody's home": "(HOME / 'a').mkdir()",
    "a file in the project": f"Path({str(Path(__file__).parent)!r}, 'a.txt').unlink()",
    "a file above its folder": "(tmp_path.parents[1] / 'AGENTS.md').write_text('x')",
    "a database elsewhere": "sqlite3.connect(HOME / 'a.db').close()",
    "a connection": "socket.create_connection(('192.0.2.1', 9), 0.01)",
    "a name": "socket.getaddrinfo('example.invalid', 80)",
}


def source(**bodies: str) -> str:
    return HEAD + "".join(TEST.format(name=name, body=body) for name, body in bodies.items())


def test_what_reaches_out_fails(tmp_path: Path) -> None:
    bad = {name.replace(" ", "_").replace("'", ""): body for name, body in BAD.items()}
    done = run_tests(source(good="(tmp_path / 'a').write_text('x')", **bad), tmp_path)

    assert f"{len(BAD)} failed, 1 passed" in done.stdout
    assert done.stdout.count("It reached out of its folder: ") == len(BAD)


def test_a_process_of_a_test_that_writes_into_the_home_fails_the_run(tmp_path: Path) -> None:
    done = run_tests(source(it="subprocess.run(['touch', str(HOME / 'left')])"), tmp_path)

    assert done.returncode == 1
    assert "A test wrote outside its folder: " in done.stdout
    assert "/home/left" in done.stdout


def test_a_process_that_is_left_behind_is_ended_and_told(tmp_path: Path) -> None:
    done = run_tests(
        "from tests.harness import leftovers\nleftovers.PATIENCE_SECONDS = 0\n"
        + source(it="os.posix_spawnp('sleep', ['sleep', '1000'], os.environ)"),
        tmp_path,
    )

    assert "1 passed, 1 error" in done.stdout
    assert "It left processes behind: " in done.stdout
    assert "sleep 1000" in done.stdout


def test_an_orphan_is_found_at_the_end(tmp_path: Path) -> None:
    orphan = "subprocess.run(['bash', '-c', 'sleep 1000 & disown'])"
    done = run_tests(source(it=orphan), tmp_path)

    assert done.returncode == 1
    assert "test_nested.py::test_it" in done.stdout.partition("Processes that were left behind:")[2]


def test_nothing_of_the_persons_environment_is_there(tmp_path: Path) -> None:
    usual = {"HOME", "LANG", "PATH", "PYTHONPATH", "TERM", "TMPDIR", "CI", "HYPOTHESIS_STORAGE_DIRECTORY"}
    assert set(os.environ) - usual == {name for name in os.environ if name.startswith(("BULLPEN_TEST_", "PYTEST_"))}
    assert {path.name for path in Path(os.environ["PATH"]).iterdir()} <= set(PROGRAMS)
    assert not list(Path.home().iterdir())


def test_processes_of_tests_import_what_is_tested_also_in_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT / "src"), "/somewhere")))
    says = "import bullpen, os; print(bullpen.__file__, os.environ['PYTHONPATH'])"
    shown = f"subprocess.run([{sys.executable!r}, '-c', {says!r}], check=True)"
    done = run_tests(source(it=shown), tmp_path, "-s")

    assert f"{ROOT / 'src' / 'bullpen' / '__init__.py'} {ROOT / 'src'}{os.pathsep}{ROOT}\n" in done.stdout


def test_signals_that_the_caller_ignores_end_a_test_s_programs_all_the_same(tmp_path: Path) -> None:
    ignoring = "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
    ignoring += (
        "signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    asserting = "assert subprocess.run(['bash', '-c', f'kill -{name} $$; true']).returncode == -number"
    named = "for name, number in (('HUP', 1), ('INT', 2)): "

    done = run_tests(source(it=named + asserting), tmp_path, program=("-c", ignoring))

    assert "1 passed" in done.stdout


def test_there_are_traps_above_the_folder_of_each_test(tmp_path: Path) -> None:
    run = Path(os.environ["BULLPEN_TEST_RUN"])

    assert tmp_path.is_relative_to(run)
    assert {name: (run / name).read_text(encoding="utf-8") for name in TRAPS} == dict.fromkeys(TRAPS, TRAP)
    assert not list((run / ".git").iterdir())
