"""The script: reading it, and running it step by step."""

import os
from collections.abc import Callable, Iterable

from bullpen.testing.agent.quick_json import from_json
from bullpen.testing.agent.renderer import Record, Renderer
from bullpen.testing.agent.streams import read_all

Action = Callable[[], int | None]


class ScriptError(Exception):
    """A script that cannot be run, and why."""


def load_script(source: str) -> list[Record]:
    """Return the steps of a JSON text, or of the file at this path; without either, one polite answer."""
    if not source:
        return [{"answer": True}]
    try:
        steps = from_json(source if source.lstrip().startswith(("[", "{")) else _file_text(source))
    except ValueError as error:
        raise ScriptError(f"The script is not JSON: {error}.") from error
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise ScriptError("The script is not a list of objects.")
    return steps


def play(script: list[Record], renderer: Renderer) -> int:
    """Run the script and return the exit status."""
    actions = [_action(step, renderer) for step in script]
    try:
        if script[:1] != [{"read": False}]:
            renderer.read()
        return _play(actions, renderer)
    except KeyboardInterrupt:
        return renderer.interrupt()


def _play(actions: Iterable[Action], renderer: Renderer) -> int:
    for act in actions:
        status = act()
        if status is not None:
            return status
    renderer.finish()
    renderer.wait_for_end_of_input()
    return 0


def _action(step: Record, renderer: Renderer) -> Action:
    """Return the call for a step: true means no argument, an object its members, anything else the first argument."""
    for name, value in step.items():
        if act := _step_named(name, renderer):
            options = {option: step[option] for option in step if option != name}
            match value:
                case False:
                    return lambda: None
                case True:
                    return lambda: act(**options)
                case dict():
                    return lambda: act(**value, **options)
                case _:
                    return lambda: act(value, **options)
    raise ScriptError(f"There is no such step: {step}.")


def _step_named(name: str, renderer: Renderer) -> Callable[..., int | None] | None:
    if name in Renderer.STEPS:
        step: Callable[..., int | None] = getattr(renderer, name)
        return step
    from bullpen.testing.agent import misbehaviour

    return misbehaviour.STEPS.get(name)


def _file_text(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise ScriptError(f"The script {path} cannot be read: {error.strerror}.") from error
    try:
        return read_all(fd).decode()
    finally:
        os.close(fd)
