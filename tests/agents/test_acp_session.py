"""How a session's mode and its model are chosen, for agents old and new."""

from typing import Any

import pytest

from bullpen.agents.acp_session import choose_mode, choose_model, model_of, modes_of

OPTIONS: dict[str, Any] = {
    "configOptions": [
        {"id": "model", "currentValue": "m1", "options": [{"value": "m1"}, {"value": "m2"}]},
        {"id": "mode", "currentValue": "build", "options": [{"value": "build"}, {"value": 7}, "plan"]},
    ]
}
OWN_LISTS: dict[str, Any] = {
    "modes": {"availableModes": [{"id": "ask"}, {"id": 7}, "plan"]},
    "models": {"currentModelId": "m1", "availableModels": [{"modelId": "m1", "name": "One"}]},
}


def test_options_of_a_session() -> None:
    assert (model_of(OPTIONS), modes_of(OPTIONS)) == ("m1", ["build"])
    given = {"sessionId": "s", "configId": "mode", "value": "build"}
    assert choose_mode(OPTIONS, "s", "build") == ("session/set_config_option", given)
    given = {"sessionId": "s", "configId": "model", "value": "m2"}
    assert choose_model(OPTIONS, "s", "m2") == ("session/set_config_option", given)


def test_lists_of_their_own() -> None:
    assert (model_of(OWN_LISTS), modes_of(OWN_LISTS)) == ("One", ["ask"])
    assert choose_mode(OWN_LISTS, "s", "ask") == ("session/set_mode", {"sessionId": "s", "modeId": "ask"})
    assert choose_model(OWN_LISTS, "s", "m2") == ("session/set_model", {"sessionId": "s", "modelId": "m2"})


@pytest.mark.parametrize("result", [{}, {"configOptions": 7}, {"configOptions": [7, {"id": "model"}]}, {"modes": []}])
def test_an_agent_may_offer_anything(result: dict[str, Any]) -> None:
    assert (model_of(result), modes_of(result)) == (None, [])


def test_an_agent_that_lets_nobody_choose() -> None:
    assert choose_model({}, "s", "m2") is None
