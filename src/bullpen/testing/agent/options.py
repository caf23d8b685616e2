"""Options among arguments that belong to the real CLI, so that argparse cannot be used."""


def option(arguments: list[str], name: str) -> str:
    """Return the value of an option; nothing if it is not there."""
    for position, argument in enumerate(arguments):
        if argument.startswith(f"{name}="):
            return argument.removeprefix(f"{name}=")
        if argument == name:
            return "".join(arguments[position + 1 : position + 2])
    return ""
