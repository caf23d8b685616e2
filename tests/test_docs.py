"""The examples in the docs run, and print what the docs say they print."""

import contextlib
import html
import io
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from shutil import which

import pytest
from docs.tables import tables, with_table
from tests.view.remembering import write_remembering

from bullpen.cli import main
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import write_example

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)[^)]*\)")


def blocks(page: Path) -> list[tuple[str, str]]:
    return [(block[1], block[2]) for block in BLOCK.finditer(page.read_text(encoding="utf-8"))]


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_examples_run_and_print_what_the_page_says() -> None:
    for page in PAGES:
        namespace: dict[str, object] = {}
        for (language, code), (following, expected) in pairwise([*blocks(page), ("", "")]):
            if language != "python":
                continue
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, str(page), "exec"), namespace)
            if following == "text":
                assert printed.getvalue() == expected, page.name


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("in_utc")
def test_the_commands_about_sessions_print_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with SqliteStore(tmp_path / "conversations.db") as store:
        write_example(store)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(ROOT / "tests" / "agents" / "recordings" / "sessions" / "claude"))
    commands = 0
    for (language, code), (following, expected) in pairwise(blocks(ROOT / "docs" / "sessions.md")):
        if (language, following) != ("console", "text"):
            continue
        program, *words = shlex.split(code.removeprefix("$ "))
        assert program == "bullpen"
        assert main(words) == 0
        printed = re.sub(r"imported-\w+", "imported-4f2a1c", capsys.readouterr().out)
        printed = re.sub(r"forked-\w+", "forked-9c3e51", printed)
        assert printed.replace(str(tmp_path), "~") == expected
        commands += 1

    assert commands == 10


@pytest.mark.usefixtures("in_utc")
def test_the_commands_about_memory_print_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with SqliteStore(tmp_path / "conversations.db") as store:
        write_remembering(store)
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["bullpen"])
    pairs = pairwise(blocks(ROOT / "docs" / "memory.md"))
    shown = [
        (code, expected) for (language, code), (kind, expected) in pairs if (language, kind) == ("console", "text")
    ]
    for code, expected in shown:
        program, *words = shlex.split(code.removeprefix("$ "))
        assert program == "bullpen"
        assert main(words) == 0
        assert capsys.readouterr().out.replace(f"{sys.executable} -m bullpen", "bullpen") == expected

    assert len(shown) == 3


def test_the_page_on_memory_has_every_reason_and_a_team_file_that_works() -> None:
    from bullpen.agents import held_session
    from bullpen.conversation import memories, session_rules
    from bullpen.memory import made_to_forget
    from bullpen.team.reader import read_team

    page = (ROOT / "docs" / "memory.md").read_text(encoding="utf-8")
    modules = (memories, session_rules, held_session)
    sources = [Path(str(module.__file__)).read_text(encoding="utf-8") for module in modules]
    sources.append((ROOT / "src" / "bullpen" / "cluster" / "worker_session.py").read_text(encoding="utf-8"))
    source = "\n".join([made_to_forget("kim"), *sources])
    quoted = [part.strip() for quote in re.findall("“(.+?)”", page) for part in quote.split("…") if part.strip()]

    assert [part for part in quoted if part not in source] == []
    said = re.findall(r'yield f?"([^"{]+)|return f?"((?:its|somebody|the) [^"{(]+)', "\n".join(sources))
    assert len(said) >= 12
    assert [words for pair in said for words in pair if words.strip() not in page] == []
    (team,) = [code for language, code in blocks(ROOT / "docs" / "memory.md") if language == "toml"]
    assert [member.memory_tokens for member in read_team(f'[[member]]\nname = "kim"\n{team}').agents] == [None, 100_000]


def test_the_demo_prints_what_the_page_on_the_first_hour_shows(tmp_path: Path) -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "bullpen", "demo", "--fast"],
        env={**os.environ, "BULLPEN_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)},
        check=True,
        capture_output=True,
        encoding="utf-8",
    ).stdout

    pairs = pairwise(blocks(ROOT / "docs" / "first-hour.md"))
    (shown,) = [following[1] for block, following in pairs if block[1] == "$ make demo\n"]

    assert "demo: $(CORE) $(PROGRAM)\n\t@$(BIN)/bullpen demo\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
    lines = iter(without_times(printed).splitlines())
    # An excerpt: every line is there, in this order. `in` goes on where it found the line before.
    assert [line for line in without_times(shown).splitlines() if line not in lines] == []


def test_the_readme_is_two_screens_and_the_first_says_how_to_begin() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first_screen = readme.partition("\n## ")[0]

    assert len(readme.splitlines()) < 100
    assert len(first_screen.splitlines()) < 30
    assert "![" in first_screen
    for installer in ("pipx install", "uv tool install", "pip install"):
        assert f"{installer} '.[all]'" in first_screen
    assert re.findall(r"^\$ bullpen (\w+)", first_screen, re.MULTILINE) == ["demo", "init", "chat"]


def test_the_readme_in_chinese_says_the_same() -> None:
    english, chinese = ROOT / "README.md", ROOT / "README.zh.md"

    assert levels(english) == levels(chinese)
    assert [*map(without_comments, blocks(english))] == [*map(without_comments, blocks(chinese))]
    assert links(english) == ["README.zh.md", *links(chinese)[1:]]
    assert links(chinese)[0] == "README.md"
    assert named_in(english) == named_in(chinese)
    assert versions(english) == versions(chinese)


def versions(page: Path) -> list[str]:
    return re.findall(r"\d+(?:\.\d+)+", page.read_text(encoding="utf-8"))


def levels(page: Path) -> list[int]:
    return [len(heading.split()[0]) for heading in headings(page)]


def links(page: Path) -> list[str]:
    return LINK.findall(page.read_text(encoding="utf-8"))


def named_in(page: Path) -> Counter[str]:
    """Return what is in backticks outside of blocks: commands, files, keys."""
    return Counter(re.findall(r"`[^`\n]+`", BLOCK.sub("", page.read_text(encoding="utf-8"))))


def without_comments(block: tuple[str, str]) -> tuple[str, str]:
    language, code = block
    return language, re.sub(r" *# .*", "", code) if language == "console" else code


def without_times(text: str) -> str:
    return re.sub(r"\d\d:\d\d", "HH:MM", re.sub(r"\d+\.\d s\b", "N s", text))


def test_the_example_prints_what_the_page_on_the_library_shows() -> None:
    program = [sys.executable, str(ROOT / "examples" / "first_prompt.py")]
    printed = subprocess.run(program, check=True, capture_output=True, encoding="utf-8").stdout

    shown = [
        following[1]
        for block, following in pairwise(blocks(ROOT / "docs" / "library.md"))
        if block[1] == "$ make example\n"
    ]

    assert shown == [printed]


def test_links_lead_somewhere() -> None:
    named = [(page, link) for page in PAGES for link in LINK.findall(page.read_text(encoding="utf-8"))]

    assert [(page.name, link) for page, link in named if not (page.parent / link).exists()] == []


def test_links_lead_to_headings() -> None:
    found = re.compile(r"\]\(([^)#\s:]*)#([^)\s]+)\)")
    named = [(page, *link) for page in PAGES for link in found.findall(page.read_text(encoding="utf-8"))]

    assert [
        (page.name, to, anchor) for page, to, anchor in named if anchor not in anchors(page.parent / to if to else page)
    ] == []


def anchors(page: Path) -> set[str]:
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings(page)}


def headings(page: Path) -> list[str]:
    """Return the headings of a page, with their signs."""
    return re.findall(r"^#+ .+$", BLOCK.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)


def test_pages_are_for_people_who_arrive_today() -> None:
    old = re.compile(r"TypeScript system|our user|\(counted\)|\| counted \|")

    assert [(page.name, found) for page in PAGES for found in old.findall(page.read_text(encoding="utf-8"))] == []


def test_the_list_of_pages_leads_to_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    pages = {page.resolve() for page in PAGES} - {index, ROOT / "README.md", ROOT / "README.zh.md"}

    assert {(index.parent / link).resolve() for link in links(index)} >= pages


NOT_OURS = re.compile(
    r"\b(?:[a-z]+-[a-z]+-[0-9a-f]{6}|max|sarah|ada|kim|lee|tests|claude|codex|gemini|\w*_\w*|session \w+|doctor)\b",
    re.IGNORECASE,
)
"""What a picture of a screen takes from its team, from programs and from chance."""


def phrases(picture: Path) -> set[str]:
    """Return the words on a picture of a screen that stand together, without names and numbers."""
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", picture.read_text(encoding="utf-8"))
    parts = [part for text in shown for part in NOT_OURS.split(html.unescape(text).replace("\xa0", " "))]
    return {
        " ".join(words.split()).lower() for part in parts for words in re.findall(r"[A-Za-z][A-Za-z' ]*[a-z]", part)
    }


def test_the_words_on_pictures_are_those_of_the_product() -> None:
    sources = [path for path in (ROOT / "src" / "bullpen").rglob("*") if path.suffix in {".py", ".toml", ".tcss"}]
    source = "\n".join(
        path.read_text(encoding="utf-8") for path in [*sources, *(ROOT / "docs" / "pictures").glob("*.py")]
    )
    # A sentence may be two strings in the source.
    known = re.sub(r'[\s",]+', " ", re.sub(r'"\s+f?"', "", source)).lower()
    for name in ("tour", "tui-dark", "tui-light", "doctor"):
        found = phrases(ROOT / "docs" / "pictures" / f"{name}.svg")
        assert len(found) > 5
        assert sorted(words for words in found if words not in known) == [], f"{name}: run make pictures"


def test_make_targets_in_the_docs_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    named = set(re.findall(r"(?:`|^\$ )make ([\w-]+)", pages, re.MULTILINE))

    assert named
    assert named <= targets


def test_the_page_on_conversations_names_every_event() -> None:
    from bullpen.conversation.events import ConversationEvent

    page = (ROOT / "docs" / "conversation.md").read_text(encoding="utf-8").partition("## Which events are there?")[2]

    assert set(re.findall(r"`([A-Z]\w+)`", page)) == {event.__name__ for event in ConversationEvent.__args__}


def test_a_hand_over_without_a_marker_is_offered_as_the_page_says() -> None:
    from bullpen.routing.missed_hand_overs import missed_hand_over
    from bullpen.team.reader import read_team

    members = ['name = "kim"', 'name = "max"\nagent = "claude"', 'name = "sarah"\nagent = "codex"']
    team = read_team("".join(f"[[member]]\n{member}\n" for member in members))
    page = (ROOT / "docs" / "conversation.md").read_text(encoding="utf-8")
    rows = page.partition("| offered | not offered |\n|---|---|\n")[2].partition("\n\n")[0].splitlines()
    for number, is_offered in ((1, True), (2, False)):
        column = " ".join(row.split("|")[number] for row in rows)
        examples = re.findall(r"“(.+?)”|`(.+?)`", column)
        assert examples
        for words, marker in examples:
            reply = f"{words} `[NEXT: sarah]`" if words.endswith(":") else words or marker
            assert (missed_hand_over(reply, team.member("max"), team) is not None) is is_offered, reply


def test_ten_lines_are_enough_for_a_conversation(tmp_path: Path) -> None:
    from bullpen.team.templates import team_text, template

    (tmp_path / "team.toml").write_text(team_text(template("plan-build-test"), (), person="kim"), encoding="utf-8")
    command = [sys.executable, str(ROOT / "examples" / "ten_lines.py"), str(tmp_path / "team.toml")]
    environment = {**os.environ, "BULLPEN_HOME": str(tmp_path)}

    printed = subprocess.run(command, check=True, capture_output=True, encoding="utf-8", env=environment).stdout

    assert [line.partition("(")[0] for line in printed.splitlines()][-1] == "Quiet"
    assert printed.count("Said(") == 3
    without = subprocess.run(command[:2], check=False, capture_output=True, encoding="utf-8")
    assert (without.returncode, without.stdout) == (1, "")
    assert without.stderr.startswith("usage: python examples/ten_lines.py team.toml")


def test_the_page_on_the_command_line_names_every_command_and_no_other() -> None:
    from bullpen.cli import COMMANDS

    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")

    assert set(re.findall(r"^\| `bullpen (\w+)`", page, re.MULTILINE)) == set(COMMANDS)


def test_tables_in_the_docs_are_as_the_code_says() -> None:
    for place, table in tables().items():
        page, _, heading = place.partition("#")
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        assert with_table(text, heading, table) == text, "run: make docs"


def test_the_page_on_the_command_line_knows_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    told = capsys.readouterr().out.partition("exit codes:")[2]
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")

    assert re.findall(r"^\| (\d+) \|", page, re.MULTILINE) == re.findall(r"^  (\d+) ", told, re.MULTILINE)


def test_the_page_on_troubles_quotes_what_bullpen_says() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    files = [path for path in (ROOT / "src" / "bullpen").rglob("*") if path.suffix in {".py", ".html", ".js"}]
    # A sentence may be two strings in the source.
    source = re.sub(r'"\s+f?"', "", "\n".join(path.read_text(encoding="utf-8") for path in files))
    quoted = [part.strip() for quote in re.findall("“(.+?)”", page) for part in quote.split("…")]

    assert len(quoted) > 10
    assert [part for part in quoted if part not in source] == []


def test_the_page_on_data_names_every_file_that_bullpen_keeps(tmp_path: Path) -> None:
    from bullpen.config import default_database
    from bullpen.web.session_file import sessions_beside

    data = tmp_path / "data"
    environment = {**os.environ, "BULLPEN_HOME": str(data), "XDG_STATE_HOME": str(tmp_path / "state")}
    for words in (["demo", "--fast"], ["init", "--scripted"], ["run", "hello"]):
        command = [sys.executable, "-m", "bullpen", *words]
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    page = (ROOT / "docs" / "data-and-upgrades.md").read_text(encoding="utf-8")

    names = {path.name for path in data.iterdir()} | {sessions_beside(default_database()).name, "input-histories"}
    assert len(names) > 4
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []


@pytest.mark.foreign
@pytest.mark.skipif(sys.platform != "linux" or which("sqlite3") is None, reason="the page is about Linux with sqlite3")
def test_the_backups_of_the_page_on_data_hold_everything(tmp_path: Path) -> None:
    section = (ROOT / "docs" / "data-and-upgrades.md").read_text(encoding="utf-8").partition("\n## Backups\n")[2]
    backup, one = [code for language, code in BLOCK.findall(section) if language == "console"][:2]
    (tmp_path / "bullpen").write_text(f'#!/bin/sh\nexec {sys.executable} -m bullpen "$@"\n', encoding="utf-8")
    (tmp_path / "bullpen").chmod(0o755)
    environment = {
        **{name: value for name, value in os.environ.items() if name not in {"BULLPEN_HOME", "XDG_DATA_HOME"}},
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path),
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
    }
    # Not in the home itself: what bullpen keeps there would count as changed by the turns.
    project = tmp_path / "project"
    project.mkdir()
    lines = [
        "bullpen init --scripted --template plan-build-test",
        "bullpen run hello",
        *(backup + one).splitlines(),
        "bullpen sessions --json",
    ]
    lines += ["bullpen sessions --json --db ~/backup.db"]

    printed = [
        subprocess.run(
            ["sh", "-c", line.removeprefix("$ ")], cwd=project, env=environment, check=True, capture_output=True
        ).stdout
        for line in lines
    ]

    now, before = json.loads(printed[-2]), json.loads(printed[-1])
    assert [conversation["messages"] for conversation in before] == [3]
    assert [conversation["messages"] for conversation in now] == [3, 3], "the imported one is there, too"
