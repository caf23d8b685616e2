"""Which agents there are, and what their specs promise."""

from importlib.metadata import EntryPoint

import pytest
from msgspec.structs import replace
from tests.real_cli import install

from bullpen.agents.claude import SPEC as CLAUDE
from bullpen.agents.registry import agent_spec, known_agents, not_loaded
from bullpen.agents.spec import AgentSpec
from bullpen.errors import UnknownAgent
from bullpen.permissions import Permission


def test_the_modules_here_are_found_by_name_and_alias() -> None:
    assert {"claude-code", "openai-codex", "google-gemini"} <= set(known_agents())
    assert agent_spec("Claude") is agent_spec("claude-code") is CLAUDE


def test_an_unknown_agent_is_named_with_the_known_ones() -> None:
    with pytest.raises(UnknownAgent, match=r"There is no agent type 'clade'\. Known types: claude-code, .*codex"):
        agent_spec("clade")


def entry_point(value: object) -> EntryPoint:
    class Loaded(EntryPoint):
        def load(self) -> object:
            if isinstance(value, Exception):
                raise value
            return value

    return Loaded(name="x", value="other:SPEC", group="bullpen.agents")


def test_other_packages_bring_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = replace(CLAUDE, name="theirs", aliases=())
    found = [entry_point(theirs), entry_point(ImportError("broken package")), entry_point("not a spec")]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: found)
    known_agents.cache_clear()
    try:
        assert agent_spec("theirs") is theirs
    finally:
        known_agents.cache_clear()
    assert not_loaded() == [
        "other:SPEC cannot be loaded: ImportError: broken package.",
        "other:SPEC is not an AgentSpec but a str.",
    ]


SPECS = list(known_agents().values())
PERMISSIONS: list[Permission] = ["read-only", "edit", "full"]
every_spec = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)


@every_spec
def test_the_tested_version_is_the_one_that_the_tests_install(spec: AgentSpec) -> None:
    assert spec.tested_versions == (install.versions(install.PINS)[spec.program],)


@every_spec
def test_a_spec_says_everything_a_person_needs(spec: AgentSpec) -> None:
    assert spec.tested_versions
    assert "npm install -g" in spec.hints["not_installed"]
    assert spec.hints["not_signed_in"]
    assert set(spec.permissions) == set(PERMISSIONS)


@every_spec
@pytest.mark.parametrize("permission", ["read-only", "edit"])
def test_nothing_is_bypassed_unless_asked_for_by_name(spec: AgentSpec, permission: Permission) -> None:
    words = " ".join([*spec.command, *spec.arguments(permission, None), *spec.last_arguments, *spec.settings])

    for bypass in ("dangerously", "danger-full", "yolo", "skip-trust", "TRUST", "bypass", "full-auto"):
        assert bypass not in words


@every_spec
def test_permissions_differ(spec: AgentSpec) -> None:
    assert len({tuple(spec.arguments(permission, None)) for permission in PERMISSIONS}) == 3


@every_spec
def test_the_model_is_passed_on(spec: AgentSpec) -> None:
    arguments = spec.arguments("read-only", "some-model")

    assert arguments[-1] == "some-model"
    assert "some-model" not in spec.arguments("read-only", None)


@pytest.mark.parametrize(
    ("agent", "permission", "arguments"),
    [
        ("claude", "read-only", ["--allowedTools", "Bash(pytest),Bash(pytest *),Bash(npm test),Bash(npm test *)"]),
        ("claude", "edit", ["--allowedTools", "Bash(pytest),Bash(pytest *),Bash(npm test),Bash(npm test *)"]),
        ("gemini", "edit", ["--allowed-tools", "run_shell_command(pytest),run_shell_command(npm test)"]),
        (
            "qwen",
            "edit",
            [
                *("--allowed-tools", "run_shell_command(pytest),run_shell_command(npm test)"),
                "--exclude-tools",
                "run_shell_command(*$*),run_shell_command(*`*),run_shell_command(*<(*),run_shell_command(*>(*)",
            ],
        ),
        ("gemini", "read-only", []),
        ("qwen", "read-only", []),
        ("codex", "edit", []),
        ("claude", "full", []),
        ("gemini", "full", []),
    ],
)
def test_allowed_commands_are_passed_on_where_they_mean_something(
    agent: str, permission: Permission, arguments: list[str]
) -> None:
    spec = agent_spec(agent)

    assert spec.arguments(permission, None, ("pytest", "npm test")) == [*spec.arguments(permission, None), *arguments]
    assert spec.arguments(permission, None, ()) == spec.arguments(permission, None)


@pytest.mark.parametrize("command", ["", "-x", "pytest),Bash(*", "a,b", "pytest && rm", "{}", "pytest\nrm"])
def test_a_command_that_could_widen_a_rule_is_refused(command: str) -> None:
    with pytest.raises(ValueError, match="cannot be allowed"):
        agent_spec("claude").arguments("edit", None, (command,))
