"""Which agents there are, and what their specs promise."""

import re
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.agents.real_cli import install

from bullpen.agents.claude import SPEC as CLAUDE
from bullpen.agents.environment import child_environment
from bullpen.agents.registry import agent_spec, known_agents, not_loaded
from bullpen.agents.spec import AgentSpec
from bullpen.agents.vendor_variables import VENDOR_VARIABLES
from bullpen.errors import UnknownAgent
from bullpen.permissions import Permission
from bullpen.program_files import BEGINNINGS, ENDINGS, FILES, FOLDERS, LAST_NAMES

DOCS = Path(__file__).parents[2] / "docs" / "agents.md"


def test_the_modules_here_are_found_by_name_and_alias() -> None:
    assert {"claude-code", "openai-codex", "google-gemini"} <= set(known_agents())
    assert agent_spec("Claude") is agent_spec("claude-code") is CLAUDE


def test_an_unknown_agent_is_named_with_the_known_ones() -> None:
    with pytest.raises(UnknownAgent, match=r"There is no agent type 'clade'\. Known types: claude, codex, "):
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
    pinned = install.versions(install.PINS, install.COMMANDS | install.OTHERS) | install.NOT_INSTALLED
    assert spec.tested_versions == (pinned[spec.program],)


@every_spec
def test_a_spec_says_everything_a_person_needs(spec: AgentSpec) -> None:
    assert spec.tested_versions
    assert re.search("(npm install -g|uv tool install) ", spec.hints["not_installed"])
    assert spec.hints["not_signed_in"]
    assert set(spec.permissions) - {"ask"} == set(PERMISSIONS)


@every_spec
@pytest.mark.parametrize("permission", ["read-only", "edit"])
def test_nothing_is_bypassed_unless_asked_for_by_name(spec: AgentSpec, permission: Permission) -> None:
    words = " ".join([*spec.command, *spec.arguments(permission, None), *spec.last_arguments, *spec.settings])

    for bypass in ("dangerously", "danger-full", "yolo", "skip-trust", "TRUST", "bypass", "full-auto"):
        assert bypass not in words


@pytest.mark.parametrize(
    ("agent", "variable", "passed"),
    [
        ("copilot", "COPILOT_ALLOW_ALL", "COPILOT_GITHUB_TOKEN"),
        ("copilot", "COPILOT_ALLOW_ALL", "COPILOT_PROVIDER_API_KEY"),
        ("opencode", "OPENCODE_PERMISSION", "OPENCODE_API_KEY"),
        ("opencode", "OPENCODE_EXPERIMENTAL", "OPENCODE_CONFIG"),
    ],
)
@pytest.mark.parametrize("permission", [*PERMISSIONS, "ask"])
def test_nothing_is_bypassed_by_a_variable_of_the_persons_own(
    agent: str, variable: str, passed: str, permission: Permission, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "true")
    monkeypatch.setenv(passed, "given")

    environment = child_environment(agent_spec(agent).with_permissions(permission))

    assert variable not in environment
    assert environment[passed] == "given"


def test_the_docs_name_the_variables_of_vendors_that_are_passed_whichever_model_is_chosen() -> None:
    (said,) = [text for text in DOCS.read_text(encoding="utf-8").split("\n\n") if "whichever model" in text]
    named = set(re.findall(r"`([A-Z_]+(?:\*|TOKEN))`", said))

    assert named == {pattern for pattern in VENDOR_VARIABLES if not pattern.endswith("_API_KEY")}
    for agent in ("opencode", "pi"):
        assert set(VENDOR_VARIABLES) <= set(agent_spec(agent).environment)


def test_copilot_may_not_edit_what_decides_what_runs() -> None:
    denied = {argument for argument in agent_spec("copilot").arguments("edit", None) if "deny-tool=write(" in argument}

    patterns = {".*", "HEAD", "Jenkinsfile*", *FILES, *LAST_NAMES, *(f"{folder}/**" for folder in FOLDERS)}
    patterns |= {*(f"{beginning}*" for beginning in BEGINNINGS), *(f"*{ending}" for ending in ENDINGS)}
    assert denied == {f"--deny-tool=write({pattern})" for pattern in patterns}


@every_spec
def test_permissions_differ(spec: AgentSpec) -> None:
    arguments = {tuple(spec.arguments(permission, None)) for permission in PERMISSIONS}

    # Where it asks by way of a driver, that one answers by the permissions: tests/agents/real_cli tries it.
    assert len(arguments) == 3 or spec.driver is not None


@every_spec
def test_the_model_is_passed_on(spec: AgentSpec) -> None:
    arguments = spec.arguments("read-only", "some-model")

    assert arguments[-1:] == ["some-model"] or (spec.model_flag is None and spec.driver is not None)
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
