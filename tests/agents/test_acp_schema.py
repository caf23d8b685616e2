"""What is sent in the Agent Client Protocol is what its public schema describes: drift would be seen here."""

from typing import Any

import pytest
from tests.agents.test_acp_recordings import CLIS, NO, STOP, YES, Played

NOT_INSTALLED = "THE SCHEMA OF ACP IS NOT INSTALLED: run `pip install agent-client-protocol`; only this test needs it"
schema: Any = pytest.importorskip("acp.schema", reason=NOT_INSTALLED)

PARAMS = {
    "initialize": "InitializeRequest",
    "session/new": "NewSessionRequest",
    "session/load": "LoadSessionRequest",
    "session/set_mode": "SetSessionModeRequest",
    "session/set_config_option": "SetSessionConfigOptionSelectRequest",
    "session/prompt": "PromptRequest",
    "session/cancel": "CancelNotification",
}


@pytest.mark.parametrize("cli", CLIS)
@pytest.mark.parametrize(("case", "answer"), [("yes", YES), ("no", NO), ("stop", STOP)])
def test_messages_are_those_of_the_schema(cli: str, case: str, answer: Any) -> None:
    played = Played(cli, case, answer)

    for message in played.sent:
        assert message["jsonrpc"] == "2.0"
        if "method" in message:
            _check(PARAMS[message["method"]], message["params"])
        elif "result" in message and "outcome" in message["result"]:
            _check("RequestPermissionResponse", message["result"])


def _check(name: str, value: dict[str, Any]) -> None:
    """Read a message as the schema does, and see that it leaves nothing of it out."""
    read = getattr(schema, name).model_validate(value)
    assert read.model_dump(by_alias=True, exclude_unset=True, mode="json") == value
