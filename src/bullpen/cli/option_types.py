"""What the values of options must be; argparse says the sentences below when one is not."""

import argparse


def named_agent(name: str) -> str:
    """Return the agent that a person means."""
    from bullpen.doctor import agent_name
    from bullpen.errors import UnknownAgent, WrongUsage

    try:
        return agent_name(name)
    except UnknownAgent as error:
        raise WrongUsage(str(error)) from error


def pool(text: str) -> str:
    """Return the name of a pool of workers."""
    from bullpen.team.keys import POOL

    try:
        return str(POOL.read(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be {POOL.words}") from None


def public_address(text: str) -> str:
    """Return the address of a proxy in front of the server."""
    from bullpen.web.address import public_origin

    try:
        return public_origin(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def day(text: str) -> str:
    """Return a day: 2026-11-16."""
    from datetime import date

    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise argparse.ArgumentTypeError("must be a day such as 2026-11-16") from None


def at_least_one(text: str) -> int:
    """Return a count."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return int(text)


def seconds(text: str) -> float:
    """Return a time."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("must be more than 0")
    return value


def port(text: str) -> int:
    """Return the number of a port; 0 means any free one."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError("must be a number from 0 to 65535")
    return int(text)
