"""Ending every running agent at once, for a process that leaves without waiting for its conversations to close."""

from bullpen.agents.process_tree import end_all_running


def end_running_agents() -> None:
    """Kill every program that this process runs. The next start says which turns were interrupted."""
    end_all_running()
