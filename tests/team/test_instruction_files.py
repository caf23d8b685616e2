"""Instruction files: real files, links, pipes and folders, and what people read about those that cannot be used."""

import os
import subprocess
from pathlib import Path

import pytest

from bullpen.agents.registry import agent_spec
from bullpen.errors import InstructionFileProblem
from bullpen.team.instruction_files import MAX_BYTES, find_instruction_files, read_instruction_file
from bullpen.team.instruction_imports import ReadInstructions


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "team"
    (folder / "docs").mkdir(parents=True)
    return folder


def problem(root: Path, name: str, *, outside_allowed: bool = False) -> str:
    with pytest.raises(InstructionFileProblem) as caught:
        read_instruction_file(root, name, outside_allowed=outside_allowed)
    assert caught.value.name == name
    return str(caught.value)


def read(root: Path, name: str) -> str:
    return read_instruction_file(root, name, outside_allowed=False)


def test_a_file_in_the_folder_or_below_it(root: Path) -> None:
    (root / "TEAM.md").write_text("Be kind.\n", encoding="utf-8")
    (root / "docs" / "说明.md").write_text("写测试。", encoding="utf-8")

    assert read(root, "TEAM.md") == "Be kind.\n"
    assert read(root, "docs/说明.md") == "写测试。"
    assert read(root, "docs/../TEAM.md") == "Be kind.\n"
    assert read(root, str(root / "TEAM.md")) == "Be kind.\n"


def test_a_byte_order_mark_is_no_part_of_the_text(root: Path) -> None:
    (root / "TEAM.md").write_bytes(b"\xef\xbb\xbfBe kind.")

    assert read(root, "TEAM.md") == "Be kind."


def test_a_link_within_the_folder_is_followed(root: Path) -> None:
    (root / "docs" / "real.md").write_text("Be kind.", encoding="utf-8")
    (root / "TEAM.md").symlink_to("docs/real.md")
    (root / "more").symlink_to("docs")

    assert read(root, "TEAM.md") == read(root, "more/real.md") == "Be kind."


def test_the_folder_itself_may_be_reached_by_a_link(root: Path) -> None:
    (root / "TEAM.md").write_text("Be kind.", encoding="utf-8")
    link = root.parent / "link"
    link.symlink_to(root)

    assert read(link, "TEAM.md") == "Be kind."


def test_a_file_outside_is_read_only_if_that_is_allowed(root: Path) -> None:
    outside = root.parent / "secret.md"
    outside.write_text("A secret.", encoding="utf-8")
    (root / "link.md").symlink_to(outside)
    (root / "up").symlink_to("..")

    for name in ("../secret.md", "link.md", "up/secret.md", str(outside)):
        assert problem(root, name) == (
            f"The instruction file {name!r} is outside {root.resolve()}. Move it into that folder, or set "
            "outside_files = true in the team file."
        )
        assert read_instruction_file(root, name, outside_allowed=True) == "A secret."


def test_a_folder_beside_with_a_longer_name_is_outside(root: Path) -> None:
    beside = root.parent / "team-secrets"
    beside.mkdir()
    (beside / "x.md").write_text("A secret.", encoding="utf-8")

    assert "is outside" in problem(root, "../team-secrets/x.md")


def test_a_link_put_there_after_looking_is_not_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent swaps a folder for a link while we are between resolving the name and opening the file."""
    (root.parent / "x.md").write_text("A secret.", encoding="utf-8")
    (root / "docs" / "x.md").write_text("Be kind.", encoding="utf-8")
    open_as_ever = os.open

    def swap_then_open(path: str | Path, flags: int, *, dir_fd: int | None = None) -> int:
        if not (root / "docs").is_symlink():
            (root / "docs").rename(root / "away")
            (root / "docs").symlink_to("..")
        return open_as_ever(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swap_then_open)

    assert "A secret." not in problem(root, "docs/x.md")


def test_a_file_that_is_not_there(root: Path) -> None:
    (root / "TEAM.md").write_text("Be kind.", encoding="utf-8")
    (root / "dangling.md").symlink_to("nothing.md")

    for name in ("nothing.md", "dangling.md", "no/such/folder.md", "TEAM.md/x"):
        assert problem(root, name) == (
            f"The instruction file {name!r} does not exist. Write it, or change instruction_file."
        )


def test_what_is_no_file_is_not_waited_for(root: Path) -> None:
    os.mkfifo(root / "pipe")

    for name in ("pipe", "docs", "."):
        assert "is not a regular file. Name a text file" in problem(root, name)
    assert "is not a regular file" in problem(root, "/dev/zero", outside_allowed=True)


def test_no_descriptor_stays_open(root: Path) -> None:
    (root / "TEAM.md").write_text("Be kind.", encoding="utf-8")
    os.mkfifo(root / "docs" / "pipe")
    before = len(list(Path("/dev/fd").iterdir()))

    read(root, "TEAM.md")
    for name in ("docs/pipe", "docs", ".", "docs/nothing.md", "TEAM.md/x"):
        problem(root, name)

    assert len(list(Path("/dev/fd").iterdir())) == before


def test_a_file_may_have_16_mib_and_no_byte_more(root: Path) -> None:
    (root / "most.md").write_bytes(b"x" * MAX_BYTES)
    (root / "more.md").write_bytes(b"x" * (MAX_BYTES + 1))

    assert len(read(root, "most.md")) == MAX_BYTES == 16_777_216
    assert problem(root, "more.md") == "The instruction file 'more.md' is longer than 16 MiB. Shorten it."


def test_bytes_that_are_no_text(root: Path) -> None:
    (root / "latin.md").write_bytes("one\ntwo\nqué\n".encode("latin-1"))

    assert problem(root, "latin.md") == "The instruction file 'latin.md' is not valid UTF-8 (line 3). Save it as UTF-8."


@pytest.mark.parametrize("name", ["a\0b", "circle", "x" * 5_000, "x/" * 5_000])
def test_names_that_no_file_can_have(root: Path, name: str) -> None:
    (root / "circle").symlink_to("circle")

    assert len(problem(root, name)) < 600


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read(root: Path) -> None:
    (root / "TEAM.md").write_text("x", encoding="utf-8")
    (root / "TEAM.md").chmod(0)

    assert "cannot be read: Permission denied." in problem(root, "TEAM.md")


def names(root: Path, cwd: Path | str = "", *usual: str, outside_allowed: bool = False) -> list[str]:
    found = find_instruction_files(
        root, Path(cwd), usual or ("CLAUDE.md", "AGENTS.md"), outside_allowed=outside_allowed
    )
    return [file.name for file in found]


def test_rules_hold_from_the_teams_folder_down_to_the_members(root: Path) -> None:
    (root / "docs" / "deep").mkdir()
    for folder in (root, root / "docs", root / "docs" / "deep"):
        (folder / "CLAUDE.md").write_text(folder.name, encoding="utf-8")

    assert names(root) == ["CLAUDE.md"]
    assert names(root, "docs") == names(root, root / "docs") == ["CLAUDE.md", "docs/CLAUDE.md"]
    assert names(root, "docs/deep") == ["CLAUDE.md", "docs/CLAUDE.md", "docs/deep/CLAUDE.md"]
    assert read(root, "docs/CLAUDE.md") == "docs"


def test_agents_md_takes_the_place_of_a_file_of_its_own_that_is_missing(root: Path) -> None:
    (root / "AGENTS.md").touch()
    (root / "docs" / "AGENTS.md").touch()
    (root / "docs" / "CLAUDE.md").touch()

    assert names(root, "docs") == ["AGENTS.md", "docs/CLAUDE.md"]
    assert names(root, "docs", "GEMINI.md", "AGENTS.md") == ["AGENTS.md", "docs/AGENTS.md"]


def test_no_file_is_fine(root: Path) -> None:
    assert names(root) == names(root, "no/such") == []
    assert find_instruction_files(root, Path(), ()) == ()


def test_rules_at_the_top_of_the_repository_hold_too(root: Path) -> None:
    subprocess.run(["git", "init", "-q", str(root.parent)], check=True)
    (root.parent / "AGENTS.md").write_text("top\n@team/x.md\n@../y.md", encoding="utf-8")
    (root / "AGENTS.md").write_text("team", encoding="utf-8")
    (root / "x.md").write_text("x", encoding="utf-8")

    assert names(root, "docs") == [str(root.parent / "AGENTS.md"), "AGENTS.md"]
    read_all = ReadInstructions(outside_allowed=False)
    for file in find_instruction_files(root, Path("docs"), ("AGENTS.md",)):
        read_all.add(file)
    assert read_all.texts == ["top\nx\n@../y.md", "team"]
    assert [problem.partition(": ")[2] for problem in read_all.problems] == [f"it is outside {root.parent}."]


def test_a_repository_around_the_users_home_is_none_of_the_teams(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "-q", str(root.parent)], check=True)
    (root.parent / "AGENTS.md").touch()
    monkeypatch.setenv("HOME", str(root.parent))

    assert names(root) == []


def test_rules_in_a_folder_of_everybody_are_nobodys(root: Path) -> None:
    """Anybody on this machine can make /tmp a repository, with rules in it."""
    subprocess.run(["git", "init", "-q", str(root.parent)], check=True)
    (root.parent / "AGENTS.md").touch()
    root.parent.chmod(0o1777)

    assert names(root) == []


def test_rules_at_the_top_hold_also_if_the_folder_is_reached_by_a_link(root: Path) -> None:
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / "AGENTS.md").touch()
    link = root.parent / "link"
    link.symlink_to(root / "docs")

    assert names(link) == [str(root / "AGENTS.md")]


def test_a_member_that_works_elsewhere_brings_its_file_only_if_that_is_allowed(root: Path) -> None:
    elsewhere = root.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "AGENTS.md").write_text("elsewhere", encoding="utf-8")
    (root / "CLAUDE.md").touch()

    assert names(root, "../elsewhere") == ["CLAUDE.md"]
    (found,) = names(root, "../elsewhere", outside_allowed=True)
    assert read_instruction_file(root, found, outside_allowed=True) == "elsewhere"
    (elsewhere / "AGENTS.md").unlink()
    assert names(root, "../elsewhere", outside_allowed=True) == ["CLAUDE.md"]


def test_a_default_file_that_leads_outside_is_found_and_refused(root: Path) -> None:
    (root.parent / "secret.md").write_text("A secret.", encoding="utf-8")
    (root / "AGENTS.md").symlink_to("../secret.md")

    assert names(root) == ["AGENTS.md"]
    assert "is outside" in problem(root, "AGENTS.md")


@pytest.mark.parametrize(
    ("agent", "first"),
    [("claude", "CLAUDE.md"), ("gemini", "GEMINI.md"), ("qwen", "QWEN.md"), ("opencode", "AGENTS.md")],
)
def test_every_cli_has_its_own_and_agents_md(agent: str, first: str) -> None:
    usual = agent_spec(agent).instruction_files

    assert (usual[0], usual[-1]) == (first, "AGENTS.md")
