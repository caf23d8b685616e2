"""A worker whose programs are those of tests/agents/asking.py: they ask, and they listen."""

import runpy

from msgspec.structs import replace
from tests.agents.asking import AskingDriver

from bullpen.agents import AgentSpec
from bullpen.agents.registry import spec_for
from bullpen.cluster import worker_file


def spec(agent: str, command: tuple[str, ...] = (), *, name: str = "") -> AgentSpec:
    found = spec_for(agent, command, name=name)
    asks = replace(found, driver=AskingDriver, stream="json", permissions={"ask": ()}, ends_by_itself=False)
    return replace(found, asking=asks)


if __name__ == "__main__":
    vars(worker_file)["spec_for"] = spec
    runpy.run_module("tests.cluster.worker_process", run_name="__main__")
