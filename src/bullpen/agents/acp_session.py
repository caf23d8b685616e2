"""What a session of the Agent Client Protocol offers, and how its mode and its model are chosen.

Older agents offer modes and models each in its own way, and newer ones both as options of the session.
"""

from typing import Any, Literal

Request = tuple[str, dict[str, Any]]
"""A method, and what it is given."""


def model_of(result: dict[str, Any]) -> str | None:
    """Return the model that a session uses, as people call it."""
    match result:
        case {"models": {"currentModelId": str(model), "availableModels": [*models]}}:
            names = [one.get("name") for one in models if isinstance(one, dict) and one.get("modelId") == model]
            return next((name for name in names if isinstance(name, str)), model)
        case _:
            value = _option(result, "model").get("currentValue")
            return value if isinstance(value, str) else None


def modes_of(result: dict[str, Any]) -> list[str]:
    """Return the ids of the modes that an agent offers."""
    match result.get("modes"):
        case {"availableModes": [*modes]}:
            return [mode["id"] for mode in modes if isinstance(mode, dict) and isinstance(mode.get("id"), str)]
        case _:
            values = _option(result, "mode").get("options")
            offered = [one.get("value") for one in values if isinstance(one, dict)] if isinstance(values, list) else []
            return [mode for mode in offered if isinstance(mode, str)]


def choose_mode(result: dict[str, Any], session: str, mode: str) -> Request:
    """Return what sets the mode of a session."""
    if "modes" in result:
        return "session/set_mode", {"sessionId": session, "modeId": mode}
    return _choose(_option(result, "mode"), session, mode)


def choose_model(result: dict[str, Any], session: str, model: str) -> Request | None:
    """Return what sets the model of a session; None if the agent lets nobody choose."""
    if option := _option(result, "model"):
        return _choose(option, session, model)
    return ("session/set_model", {"sessionId": session, "modelId": model}) if "models" in result else None


def no_mode(offers: list[str]) -> str:
    """Return the sentence for an agent that offers no mode that is known."""
    offered_modes = f"it offers {', '.join(offers)}" if offers else "it offers no modes"
    return f"It has no mode of which bullpen knows that people are asked in it: {offered_modes}"


def _choose(option: dict[str, Any], session: str, value: str) -> Request:
    return "session/set_config_option", {"sessionId": session, "configId": option.get("id"), "value": value}


def _option(result: dict[str, Any], category: Literal["mode", "model"]) -> dict[str, Any]:
    """Return the option of a session by its category, which need not be its id; empty if there is none."""
    options = result.get("configOptions")
    offered = [one for one in options if isinstance(one, dict)] if isinstance(options, list) else []
    return next((one for one in offered if one.get("category", one.get("id")) == category), {})
