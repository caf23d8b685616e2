"""bullpen init, on machines with and without agents."""

import sys
from pathlib import Path

import pytest

from bullpen.agents.registry import known_agents
from bullpen.cli import main
from bullpen.cli.init import USUAL_ORDER
from bullpen.team.file import load_team
from bullpen.team.team import Team
from bullpen.team.templates import NAMES, templates

KEYS = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CODEX_API_KEY", "OPENAI_API_KEY"]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with no agents and no keys; programs in its folder are found."""
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOGNAME", "kim")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


def install(machine: Path, name: str, *, signed_in: bool) -> None:
    program = machine / name
    asked = f'case "$1 $2" in "auth status"|"login status") exit {0 if signed_in else 1};; esac'
    program.write_text(f"#!/bin/sh\n{asked}\necho 1.2.3\n")
    program.chmod(0o755)


def team(path: str = "team.toml") -> Team:
    return load_team(Path(path)).team


def players(path: str = "team.toml") -> list[str]:
    return [member.agent for member in team(path).agents]


def test_the_agents_that_are_ready_get_the_roles(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(machine, "codex", signed_in=True)
    install(machine, "claude", signed_in=True)
    install(machine, "gemini", signed_in=False)

    assert main(["init"]) == 0

    assert capsys.readouterr().out == (
        "Wrote team.toml: builder (claude), reviewer (codex).\n"
        "Next:\n  bullpen check team.toml\n  bullpen chat team.toml\n"
        "Left out, since they are not ready: gemini (not signed in). `bullpen doctor` says what to do.\n"
    )
    assert [member.name for member in team().members] == ["kim", "builder", "reviewer"]
    assert players() == ["claude", "codex"]
    assert main(["check"]) == 0


def test_one_agent_may_play_every_role(machine: Path) -> None:
    install(machine, "codex", signed_in=True)

    assert main(["init", "--template", "debate"]) == 0

    assert players() == ["codex", "codex", "codex"]


def test_an_agent_that_is_not_ready_is_better_than_none(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(machine, "claude", signed_in=False)

    assert main(["init"]) == 0

    assert players() == ["claude", "claude"]
    assert "None of the agents here is ready; `bullpen doctor` says what to do." in capsys.readouterr().err


def test_without_any_agent_a_newcomer_can_still_continue(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init"]) == 0

    printed = capsys.readouterr().out
    assert printed.startswith("No agent is installed here, so the agents in team.toml follow a script")
    assert [member.command[0] for member in team().agents] == [sys.executable, sys.executable]
    assert main(["check"]) == 0


def test_scripted_agents_when_asked_for(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(machine, "claude", signed_in=True)

    assert main(["init", "--scripted"]) == 0

    assert capsys.readouterr().out.startswith("Wrote team.toml. Its agents follow a script.\n")
    assert players() == ["", ""]


def test_agents_that_are_chosen_are_not_looked_for(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--agents", "gemini, codex", "--template", "review"]) == 0

    assert players() == ["gemini", "codex", "gemini"]
    assert capsys.readouterr().err == ""


def test_every_agent_that_is_named_becomes_a_member(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--agents", "claude,codex,gemini,qwen,codex,codex"]) == 0

    assert capsys.readouterr().out.startswith(
        "Wrote team.toml: builder (claude), reviewer (codex), gemini (gemini), qwen (qwen), "
        "codex (codex), codex-2 (codex).\n"
    )
    assert players() == ["claude", "codex", "gemini", "qwen", "codex", "codex"]
    assert [member.permissions for member in team().agents] == ["ask", *["read-only"] * 5]


def test_of_more_agents_than_roles_those_left_out_are_named(
    machine: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("claude", "codex", "gemini"):
        install(machine, name, signed_in=True)
    monkeypatch.setenv("GEMINI_API_KEY", "x")

    assert main(["init"]) == 0

    assert players() == ["claude", "codex"]
    assert (
        "Also here: gemini. To add them: bullpen init --force --agents claude,codex,gemini\n"
    ) in capsys.readouterr().out


def test_who_is_known_to_be_signed_in_gets_the_roles(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(machine, "opencode", signed_in=True)
    install(machine, "pi", signed_in=True)
    assert main(["init"]) == 0
    assert players() == ["opencode", "pi"]
    how = "To find out, with one real turn each: bullpen doctor --live"
    unknown = f"It is not known whether these are signed in: opencode, pi. {how}\n"
    assert unknown in capsys.readouterr().out

    install(machine, "claude", signed_in=True)
    assert main(["init", "--force", "--template", "debate", "my team.toml"]) == 0

    assert players("my team.toml") == ["claude", "claude", "claude"]
    assert (
        "Also here: opencode, pi. To add them: "
        "bullpen init --force --template debate --agents claude,opencode,pi 'my team.toml'\n"
        f"{unknown}"
    ) in capsys.readouterr().out


def test_nobody_is_asked_about_a_file_that_they_have_just_written(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BULLPEN_HOME", str(machine / "data"))

    assert main(["init", "--scripted", "crew.toml"]) == 0
    assert main(["run", "crew.toml", "Hello."]) == 0
    assert "I would build it now" in capsys.readouterr().out

    Path("crew.toml").write_text(Path("crew.toml").read_text() + "\n# changed\n")
    assert main(["run", "crew.toml", "Hello."]) == 1
    assert "is new here, or has changed" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["team.yaml", "new/crew.json", "notes.txt"])
def test_what_is_not_a_team_file_is_refused(machine: Path, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("notes.txt").write_text("mine")

    assert main(["init", "--scripted", "--force", place]) == 2

    another = Path(place).with_suffix(".toml")
    assert capsys.readouterr().err == (
        f"bullpen: The name of a team file ends in .toml, and {place} does not. Try: bullpen init {another}\n"
    )
    assert [path.name for path in Path().iterdir()] == ["notes.txt"]
    assert Path("notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("names", "sentence"),
    [("clade", "There is no agent type 'clade'."), (" , ", "--agents names no agent. Known agents: ")],
)
def test_agents_that_cannot_be_chosen(
    machine: Path, capsys: pytest.CaptureFixture[str], names: str, sentence: str
) -> None:
    assert main(["init", "--agents", names]) == 2

    assert sentence in capsys.readouterr().err
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("name", "said"), [("debat", "Did you mean debate?"), ("nonsense", f"There are: {', '.join(NAMES)}.")]
)
def test_a_template_that_does_not_exist(
    machine: Path, capsys: pytest.CaptureFixture[str], name: str, said: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["init", "--template", name])

    assert f"there is no template '{name}'. {said}" in capsys.readouterr().err
    assert list(Path().iterdir()) == []


def test_help_lists_every_template_in_a_line(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["init", "--help"])

    printed = " ".join(capsys.readouterr().out.split())
    assert [one.name for one in templates() if f"{one.name} {one.purpose[:-1]}" not in printed] == []


def test_a_file_that_is_there_stays_as_it_is_unless_forced(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("team.toml").write_text("mine")

    assert main(["init", "--scripted"]) == 1
    assert Path("team.toml").read_text() == "mine"
    assert capsys.readouterr().err == (
        "bullpen: team.toml exists already and was not changed. Use --force to replace it, or choose another name.\n"
    )

    assert main(["init", "--scripted", "--force"]) == 0
    assert team().name == NAMES[0]
    assert list(Path().iterdir()) == [Path("team.toml")]


def test_a_link_that_leads_nowhere_is_there_too(machine: Path) -> None:
    Path("team.toml").symlink_to("elsewhere.toml")

    assert main(["init", "--scripted"]) == 1
    assert not Path("elsewhere.toml").exists()


def test_places(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("odd.toml").mkdir()
    Path("plain").touch()

    assert [main(["init", "--scripted", place]) for place in ("new/folder", "a/crew.toml", "odd.toml")] == [0, 0, 0]
    assert [team(path).name for path in ("new/folder/team.toml", "a/crew.toml", "odd.toml/team.toml")] == [NAMES[0]] * 3
    assert "# " in Path("a/crew.toml").read_text()
    assert "bullpen chat crew.toml" in Path("a/crew.toml").read_text()
    assert main(["init", "--scripted", "plain/below"]) == 1
    assert "cannot be written: Not a directory." in capsys.readouterr().err


def test_names_from_outside_give_a_file_that_works(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for user, name in {"max]": "max", "名字": "名字", "reviewer": "you", "\x1b": "you"}.items():
        monkeypatch.setenv("LOGNAME", user)
        assert main(["init", "--scripted", "--force", "{x}\n.toml"]) == 0
        assert team("{x}\n.toml").people[0].name == name


def test_what_is_printed_is_text(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--scripted", "\x1b[31m.toml"]) == 0

    assert "\x1b" not in capsys.readouterr().out


def test_every_agent_that_ships_has_its_place_in_the_order() -> None:
    ours = {spec.name for spec in known_agents().values() if spec.tested_versions}

    assert ours == set(USUAL_ORDER)


def test_agents_may_run_the_tests_that_are_there(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("shop").mkdir()
    Path("shop/package.json").write_text('{"scripts": {"test": "vitest"}}')

    assert main(["init", "shop", "--agents", "claude,codex"]) == 0

    assert [member.allow for member in team("shop/team.toml").agents] == [("npm test",), ()]
    assert capsys.readouterr().out == (
        "Wrote shop/team.toml: builder (claude), reviewer (codex).\n"
        "Without asking you, builder may run: npm test.\n"
        "Next:\n  bullpen check shop/team.toml\n  bullpen chat shop/team.toml\n"
    )


def test_agents_that_only_speak_a_protocol_are_offered(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(machine, "codex", signed_in=True)
    install(machine, "auggie", signed_in=True)

    assert main(["init"]) == 0

    offered = 'For agent = "acp" there is: Auggie. `bullpen doctor --all` says what to write.\n'
    assert capsys.readouterr().out.endswith(offered)
