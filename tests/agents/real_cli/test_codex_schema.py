"""What bullpen says to codex's app-server, against the schema that the genuine CLI writes of its own protocol."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from tests.agents.real_cli import install

from bullpen.agents.codex_items import IGNORED
from bullpen.agents.codex_questions import DECISIONS

RECORDINGS = Path(__file__).parents[1] / "recordings" / "asking" / "codex"
REPLIES = {
    "item/commandExecution/requestApproval": "CommandExecutionRequestApprovalResponse",
    "item/fileChange/requestApproval": "FileChangeRequestApprovalResponse",
    "item/permissions/requestApproval": "PermissionsRequestApprovalResponse",
    "item/tool/requestUserInput": "ToolRequestUserInputResponse",
    "mcpServer/elicitation/request": "McpServerElicitationRequestResponse",
}


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the schemas, by their names."""
    if not install.is_installed("codex"):
        pytest.skip("CODEX IS NOT INSTALLED: run python tests/agents/real_cli/install.py")
    folder = tmp_path_factory.mktemp("schemas")
    command = [str(install.binaries() / "codex"), "app-server", "generate-json-schema", "--out", str(folder)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "HOME": str(folder)})
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*.json")}


def check(schemas: dict[str, Any], name: str, value: Any) -> None:
    schema = schemas[name]
    jsonschema_rs.validator_for(schema).validate(value)


def said() -> list[tuple[str, dict[str, Any]]]:
    """Return who said what in all recordings: the tests of the driver see to it that it still says the same."""
    files = sorted(RECORDINGS.glob("*.jsonl"))
    lines = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return [(line["from"], line["msg"]) for line in lines]


def test_our_requests_and_notifications(schemas: dict[str, Any]) -> None:
    ours = [record for speaker, record in said() if speaker == "client" and "method" in record]

    for record in ours:
        check(schemas, "ClientRequest" if "id" in record else "ClientNotification", record)
    assert {record["method"] for record in ours} == {
        "initialize",
        "initialized",
        "thread/start",
        "turn/start",
        "turn/steer",
        "turn/interrupt",
    }


@pytest.mark.parametrize("method", ["thread/resume", "thread/fork"])
def test_our_requests_in_a_known_session(method: str, schemas: dict[str, Any]) -> None:
    start = next(record for _, record in said() if record.get("method") == "thread/start")

    check(schemas, "ClientRequest", {**start, "method": method, "params": {**start["params"], "threadId": "x"}})


def test_our_replies(schemas: dict[str, Any]) -> None:
    waiting: dict[Any, str] = {}
    answered: set[str] = set()
    for speaker, record in said():
        if speaker == "agent" and "method" in record and "id" in record:
            check(schemas, "ServerRequest", record)
            waiting[record["id"]] = record["method"]
        elif speaker == "client" and "result" in record:
            method = waiting.pop(record["id"])
            check(schemas, REPLIES[method], record["result"])
            answered.add(method)

    assert answered == {*REPLIES} - {"item/permissions/requestApproval"}
    for decision in DECISIONS.values():
        check(schemas, "CommandExecutionRequestApprovalResponse", {"decision": decision})
        check(schemas, "FileChangeRequestApprovalResponse", {"decision": decision})
        check(schemas, "McpServerElicitationRequestResponse", {"action": decision, "content": None})
    check(schemas, "PermissionsRequestApprovalResponse", {"permissions": {}, "scope": "turn"})


def test_what_we_do_not_want_to_hear_exists(schemas: dict[str, Any]) -> None:
    known = {kind["properties"]["method"]["enum"][0] for kind in schemas["ServerNotification"]["oneOf"]}

    assert {*IGNORED} <= known


def test_every_request_that_it_may_send_is_known(schemas: dict[str, Any]) -> None:
    known = {kind["properties"]["method"]["enum"][0] for kind in schemas["ServerRequest"]["oneOf"]}

    refused = {"item/tool/call", "account/chatgptAuthTokens/refresh", "attestation/generate"}
    assert known == {*REPLIES} | refused | {"applyPatchApproval", "execCommandApproval"}
