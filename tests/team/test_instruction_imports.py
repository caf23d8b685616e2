"""What instruction files import: real files, and what of them an agent is given."""

from pathlib import Path

import pytest

from bullpen.team.instruction_files import MAX_BYTES, InstructionFile
from bullpen.team.instruction_imports import DEEPEST, MOST_FILES, MOST_MENTIONS, ReadInstructions


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "team"
    (folder / "docs").mkdir(parents=True)
    return folder


def write(root: Path, **texts: str) -> None:
    for name, text in texts.items():
        (root / f"{name}.md").write_text(text, encoding="utf-8")


def read(root: Path, *names: str) -> ReadInstructions:
    found = ReadInstructions(outside_allowed=True)
    for name in names or ("CLAUDE.md",):
        found.add(InstructionFile(name=name, folder=root))
    return found


def test_a_line_that_only_imports_is_the_file(root: Path) -> None:
    write(root, CLAUDE="Before.\n@AGENTS.md\nAfter.\n", AGENTS="Be brief.\n")

    found = read(root)

    assert found.texts == ["Before.\nBe brief.\nAfter.\n"]
    assert (found.names, found.problems) == (["CLAUDE.md", "AGENTS.md"], [])


def test_a_sentence_stays_and_what_it_names_follows(root: Path) -> None:
    write(root, CLAUDE="See @docs/git.md, and @README for more.\nDone.", **{"docs/git": "No force."})
    (root / "README").write_text("About.", encoding="utf-8")

    found = read(root)

    assert found.texts == ["See @docs/git.md, and @README for more.\n\nNo force.\n\nAbout.\n\nDone."]
    assert found.names == ["CLAUDE.md", "docs/git.md", "README"]


def test_imports_are_followed_from_the_file_that_has_them(root: Path) -> None:
    write(root, CLAUDE="- @docs/a.md", **{"docs/a": "A\n@b.md", "docs/b": "B\n@../CLAUDE.md"})

    assert read(root).texts == ["A\nB\n@../CLAUDE.md"], "and no file is there twice"


def test_a_file_is_given_once_however_it_is_named(root: Path) -> None:
    write(root, TEAM="Be kind.", CLAUDE="@TEAM.md\n@./TEAM.md")
    (root / "LINK.md").symlink_to("TEAM.md")

    assert read(root, "TEAM.md", "LINK.md", "CLAUDE.md").texts == ["Be kind.", "@TEAM.md\n@./TEAM.md"]


def test_what_is_code_or_names_no_file_stays_as_it_is(root: Path) -> None:
    write(root, a="imported")
    text = "`@a.md`\n```\n@a.md\n```\nkim@a.md, @kim and @types/node (@property) @docs\n> @a.md\n@\n"
    write(root, CLAUDE=text)

    found = read(root)

    assert (found.texts, found.problems) == ([text], [])


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../secret.md", "is outside ROOT"),
        ("docs/../../secret.md", "is outside ROOT"),
        ("link.md", "is outside ROOT"),
        ("up/secret.md", "is outside ROOT"),
        ("/secret.md", "is outside ROOT"),
        ("~/secret.md", "is outside ROOT"),
        ("~/.claude/rules", "is outside ROOT"),
        (".hidden.md", "is a hidden file, which may hold secrets"),
        (".git/x.md", "is a hidden file, which may hold secrets"),
        ("none.md", "does not exist"),
    ],
)
def test_nothing_outside_and_nothing_hidden_is_imported(root: Path, name: str, why: str) -> None:
    (root / ".git").mkdir()
    for secret in (root.parent / "secret.md", root / ".hidden.md", root / ".git" / "x.md", root / ".env"):
        secret.write_text("A secret.", encoding="utf-8")
    (root / "link.md").symlink_to("../secret.md")
    (root / "up").symlink_to("..")
    (root / "env").symlink_to(".env")
    write(root, CLAUDE=f"@{name}\n@env\n@.env")

    found = read(root)

    assert found.texts == [f"@{name}\n@env\n@.env"]
    assert found.problems == [f"{name!r} in CLAUDE.md is not imported: it {why}.".replace("ROOT", str(root.resolve()))]


def test_the_folder_may_be_below_the_home(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(root.parent))
    write(root, CLAUDE="@~/team/docs/a.md", **{"docs/a": "A"})

    assert (read(root).texts, read(root).problems) == (["A"], [])


def test_what_is_no_text_stays_a_name(root: Path) -> None:
    (root / "logo.png").write_bytes(b"\xff\xfe")
    (root / "latin.md").write_bytes(b"\xff")
    write(root, CLAUDE="@logo.png\n@latin.md")

    found = read(root)

    assert found.texts == ["@logo.png\n@latin.md"]
    assert [problem.partition(" is ")[0] for problem in found.problems] == ["The instruction file 'latin.md'"]


def test_imports_end_somewhere(root: Path) -> None:
    write(root, CLAUDE="@1.md", **{str(number): f"{number}\n@{number + 1}.md" for number in range(1, 10)})
    deep = read(root)
    write(root, CLAUDE="\n".join(f"@x{number}.md" for number in range(200)), **{f"x{one}": "x" for one in range(200)})
    many = read(root)
    for name in ("half", "more"):
        (root / f"{name}.md").write_bytes(b"x" * (MAX_BYTES // 2 + 1))
    write(root, CLAUDE="@half.md\n@more.md")
    much = read(root)

    assert deep.texts == ["1\n2\n3\n4\n5\n@6.md"]
    assert deep.problems == [f"'6.md' in 5.md is not imported: it is imported over more than {DEEPEST} files."]
    assert len(many.names) == MOST_FILES
    assert len(many.problems) == 200 - MOST_FILES + 1
    assert much.names == ["CLAUDE.md", "half.md"]
    assert much.problems == ["'more.md' in CLAUDE.md is not imported: it would be too much text."]


@pytest.mark.parametrize("name", ["a\0b.md", "x" * 5_000 + ".md", "circle.md"])
def test_names_that_no_file_can_have(root: Path, name: str) -> None:
    (root / "circle.md").symlink_to("circle.md")
    write(root, CLAUDE=f"@{name}")

    assert read(root).texts == [f"@{name}"]
    assert len(read(root, name).problems) == 1


def test_no_more_is_looked_for_than_people_write(root: Path) -> None:
    """Each name costs a look at the disk, and a long one with many parts more than its length."""
    write(root, CLAUDE=f"@{'../' * 2_000}x.md " + "@x.md @y " * MOST_MENTIONS)

    found = read(root)

    rest = f"'x.md' in CLAUDE.md and all that follows is not imported: there are {MOST_MENTIONS:,} mentions before it."
    assert (len(found.problems), found.problems[-1]) == (MOST_MENTIONS // 2 + 1, rest)


def test_nothing_is_read_any_more_when_there_is_too_much(root: Path) -> None:
    big = "x" * (MAX_BYTES - 1)
    write(root, CLAUDE="@a.md\n@b.md\n@c.md\n", a=big, b=big)
    (root / "c.md").write_bytes(b"\xff")

    found = read(root)

    assert found.names == ["CLAUDE.md", "a.md"]
    assert found.problems == [f"'{name}.md' in CLAUDE.md is not imported: it would be too much text." for name in "bc"]


def test_of_hidden_folders_only_texts_are_imported(root: Path) -> None:
    for folder, name in ((".aws", "credentials"), (".github", "style.md"), (".git", "x.md")):
        (root / folder).mkdir()
        (root / folder / name).write_text(name)
    write(root, CLAUDE="@.aws/credentials\n@.github/style.md\n@.git/x.md\n")

    assert read(root).names == ["CLAUDE.md", ".github/style.md"]
