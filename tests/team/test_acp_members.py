"""Members of a team that speak the Agent Client Protocol: what bullpen knows of them, and what not."""

import pytest

from bullpen.agents.registry import agent_spec, is_known, is_restricted, known_agents, spec_for
from bullpen.errors import UnknownAgent
from bullpen.memory import SessionUse
from bullpen.permissions import Permission
from bullpen.team.own_memory import why_shared
from bullpen.team.team import Member


def test_the_protocol_needs_a_command_and_is_not_a_cli() -> None:
    with pytest.raises(UnknownAgent, match="needs a command"):
        spec_for("acp")

    assert spec_for("acp", ["opencode", "acp"]).command == ("opencode", "acp")
    assert "acp" not in known_agents()
    assert is_known("acp")


def test_bullpen_does_not_decide_what_its_programs_do_unasked() -> None:
    assert is_restricted("gemini")
    assert not is_restricted("acp")
    assert not is_restricted("something")


@pytest.mark.parametrize("permissions", ["edit", "ask"])
def test_qwen_has_a_memory_of_its_own_also_if_people_are_asked(permissions: Permission) -> None:
    member = Member(name="q", type="ai", agent="qwen", permissions=permissions)

    assert why_shared(member, agent_spec("qwen")) == ""


@pytest.mark.parametrize(("permissions", "is_own"), [("edit", True), ("ask", False)])
def test_gemini_has_none_if_people_are_asked_although_the_team_file_says_so(
    permissions: Permission, is_own: bool
) -> None:
    member = Member(name="g", type="ai", agent="gemini", permissions=permissions, memory="own")

    assert why_shared(member, agent_spec("gemini")) == (
        "" if is_own else 'with permissions = "ask" its program begins a session in every turn'
    )


def test_no_argument_chooses_a_session_that_the_driver_chooses() -> None:
    sessions = agent_spec("qwen").with_permissions("ask").sessions

    assert sessions is not None
    assert sessions.arguments(SessionUse(origin="resumed", id="x")) == ()
    # The copy of a session would be a new one.
    assert sessions.fork == ()


def test_the_command_line_of_a_turn_says_how_it_was_run() -> None:
    spec = agent_spec("gemini")

    assert spec.that_ran(("/usr/bin/gemini", "--acp", "--model", "x")) is spec.asking
    assert spec.that_ran(("/usr/bin/gemini", "--output-format", "stream-json")) is spec
