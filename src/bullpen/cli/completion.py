"""`bullpen completion`: what lets a shell complete commands and options."""

import argparse

from bullpen.cli.completion_scripts import SCRIPTS, Completed, Option

INSTALLING = """\
to install it:
  bash  bullpen completion bash > ~/.local/share/bash-completion/completions/bullpen
  zsh   bullpen completion zsh > ~/.zfunc/_bullpen     (with fpath+=~/.zfunc before compinit in ~/.zshrc)
  fish  bullpen completion fish > ~/.config/fish/completions/bullpen.fish
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("shell", choices=list(SCRIPTS), help="the shell")
    parser.epilog = INSTALLING


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    print(SCRIPTS[options.shell](completed_commands()), end="")
    return 0


def completed_commands() -> list[Completed]:
    """Return every command and action with its options, from the parsers themselves."""
    from bullpen.cli import COMMANDS, command_parser
    from bullpen.cli.sessions import ACTIONS

    found = []
    for command, purpose in COMMANDS.items():
        actions = {name: action.purpose for name, action in ACTIONS.items()} if command == "sessions" else {}
        found.append(_completed((command,), purpose, command_parser(command)[0], actions))
        found += [
            _completed((command, name), about, command_parser(command, [name])[0]) for name, about in actions.items()
        ]
    return found


def _completed(
    path: tuple[str, ...], purpose: str, parser: argparse.ArgumentParser, words: dict[str, str] | None = None
) -> Completed:
    options, named = [], dict(words or {})
    for action in parser._actions:
        if action.option_strings:
            options.append(
                Option(
                    names=tuple(action.option_strings),
                    purpose=(action.help or "").split(" (")[0].partition(";")[0],
                    takes_value=action.nargs != 0,
                    values=tuple(map(str, action.choices or ())),
                    is_file=action.metavar in ("FILE", "FOLDER"),
                )
            )
        else:
            named |= dict.fromkeys(map(str, action.choices or ()), "")
            if action.metavar in ("ID", "TURN"):
                named["last"] = "the latest"
    if path == ("help",):
        from bullpen.cli import COMMANDS

        named |= COMMANDS
    return Completed(path=path, purpose=purpose, options=tuple(options), words=named)
