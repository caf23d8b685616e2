"""Opening a team file: every file that is none is refused in a sentence."""

import os
from pathlib import Path

import pytest

from bullpen.errors import InvalidTeam, NoTeamFile, UnreadableTeamFile
from bullpen.team.file import MAX_FILE_BYTES, LoadedTeam, load_team
from bullpen.team.reader import read_team

TEXT = '[[member]]\nname = "名字"\n[[member]]\nname = "max"\nagent = "claude"\n'


def refused(path: Path) -> str:
    with pytest.raises((UnreadableTeamFile, NoTeamFile)) as caught:
        load_team(path)
    return str(caught.value).replace(str(path), "FILE")


def test_a_team_comes_with_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "team.toml").write_text(TEXT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    path = tmp_path.resolve() / "real" / "team.toml"
    expected = LoadedTeam(team=read_team(TEXT), text=TEXT, path=path)
    assert [load_team(Path(name)) for name in ("real/team.toml", "link/../real/team.toml")] == [expected, expected]
    assert expected.root == path.parent


def test_a_link_to_a_file_works_in_the_folder_of_the_link(tmp_path: Path) -> None:
    (tmp_path / "shared.toml").write_text(TEXT, encoding="utf-8")
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "team.toml").symlink_to(tmp_path / "shared.toml")

    assert load_team(tmp_path / "project" / "team.toml").root == tmp_path.resolve() / "project"


def test_what_editors_on_windows_write(tmp_path: Path) -> None:
    path = tmp_path / "team.toml"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())

    assert load_team(path).team == read_team(TEXT)


def test_a_bad_team_names_its_file(tmp_path: Path) -> None:
    path = tmp_path / "team.toml"
    path.write_text(TEXT + 'modle = "opus"\n', encoding="utf-8")

    with pytest.raises(InvalidTeam) as caught:
        load_team(path)

    problem = "line 6, member.2.modle: there is no such key. Did you mean model or role?"
    assert str(caught.value) == f"{path} cannot be used.\n  {problem}"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'name = "caf\xe9"', "FILE is not valid UTF-8 (line 1). Save it as UTF-8."),
        (b"a = 1\nb = '\xff\xfe'", "FILE is not valid UTF-8 (line 2). Save it as UTF-8."),
        (b"\x7fELF\0\0", "FILE is not a text file."),
        (b"#" * (MAX_FILE_BYTES + 1), "FILE is larger than 1024 KiB, so it is not a team file."),
    ],
)
def test_what_is_no_small_text(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "team.toml"
    path.write_bytes(content)

    assert refused(path) == sentence


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()

    assert refused(tmp_path / "none.toml") == "There is no file FILE. `bullpen init` writes one."
    assert refused(tmp_path / "file" / "team.toml") == "There is no file FILE. `bullpen init` writes one."
    assert refused(tmp_path) == "FILE is a folder. Name the file: FILE/team.toml"
    assert refused(tmp_path / "pipe") == "FILE is not a regular file."
    assert refused(Path("/dev/zero")) == "FILE is not a regular file."
    assert refused(tmp_path / ("x" * 300)) == "FILE cannot be read: File name too long."


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_we_may_not_read(tmp_path: Path) -> None:
    path = tmp_path / "team.toml"
    path.touch(mode=0o000)

    assert refused(path) == "FILE cannot be read: Permission denied."
