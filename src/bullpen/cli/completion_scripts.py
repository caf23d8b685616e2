"""The completion scripts for bash, zsh and fish: data of the commands, and a few lines that look them up.

They start no program while a person types; names of files are completed by the shell.
"""

import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple


class Option(NamedTuple):
    """An option of a command."""

    names: tuple[str, ...]
    purpose: str
    takes_value: bool
    values: tuple[str, ...]
    """The values that exist; if there are none, anything can follow."""
    is_file: bool


class Completed(NamedTuple):
    """A command, or an action of one."""

    path: tuple[str, ...]
    purpose: str
    options: tuple[Option, ...]
    words: dict[str, str]
    """Words that can follow, with what they are for."""


def bash(commands: Sequence[Completed]) -> str:
    """Return the script for bash."""
    return BASH.format(
        commands=" ".join(_names(commands)),
        actions="|".join(_actions(commands)),
        values="\n".join(_bash_values(commands)),
        cases="\n".join(map(_bash_case, commands)),
    )


def _bash_case(one: Completed) -> str:
    options = shlex.quote(" ".join(name for option in one.options for name in option.names))
    return f"    {'/'.join(one.path)}) options={options}; following={shlex.quote(' '.join(one.words))} ;;"


def _bash_values(commands: Sequence[Completed]) -> Iterator[str]:
    options = {name: option for one in commands for option in one.options for name in option.names}
    for name, option in options.items():
        if option.values:
            values = shlex.quote(" ".join(option.values))
            yield f'    {name}) COMPREPLY=($(compgen -W {values} -- "$current")); return ;;'
        elif option.takes_value:
            yield f"    {name}) return ;;"


BASH = """\
# Completion of bullpen for bash.
_bullpen() {{
  local current place word options following
  current=${{COMP_WORDS[COMP_CWORD]}}
  case ${{COMP_WORDS[COMP_CWORD-1]}} in
{values}
  esac
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case $place/$word in
      {actions}) place=$place/$word ;;
      /*) case " {commands} " in *" $word "*) place=$word ;; esac ;;
    esac
  done
  options="--help --version"
  following="{commands}"
  case $place in
{cases}
  esac
  case $current in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$following" -- "$current")) ;;
  esac
}}
complete -o default -F _bullpen bullpen
"""


def zsh(commands: Sequence[Completed]) -> str:
    """Return the script for zsh."""
    return ZSH.format(
        described=" ".join(_described(one.path[0], one.purpose) for one in commands if len(one.path) == 1),
        commands="|".join(f"/{name}" for name in _names(commands)),
        actions="|".join(_actions(commands)),
        cases="\n".join(map(_zsh_case, commands)),
    )


def _zsh_case(one: Completed) -> str:
    options = " ".join(shlex.quote(text) for option in one.options for text in _zsh_option(option))
    following = " ".join(_described(word, purpose) for word, purpose in one.words.items())
    return f"    ({'/'.join(one.path)}) options=({options}); following=({following}) ;;"


def _zsh_option(option: Option) -> Iterator[str]:
    purpose = option.purpose.replace("[", "(").replace("]", ")")
    value = f":value:({' '.join(option.values)})" if option.values else ":file:_files" if option.is_file else ":value: "
    for name in option.names:
        yield f"{name}[{purpose}]{value if option.takes_value else ''}"


def _described(word: str, purpose: str) -> str:
    return shlex.quote(f"{word}:{purpose}" if purpose else word)


ZSH = """\
#compdef bullpen
# Completion of bullpen for zsh.
_bullpen() {{
  local curcontext=$curcontext state line place word
  local -a options following
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    case $place/$word in
      ({actions}) place=$place/$word ;;
      ({commands}) place=$word ;;
    esac
  done
  options=('--help[show what there is]' '--version[print the version]')
  following=({described})
  case $place in
{cases}
  esac
  _arguments -C $options '*: :->word' && return
  (( $#following )) && _describe -t words bullpen following || _files
}}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _bullpen "$@"; else compdef _bullpen bullpen; fi
"""


def fish(commands: Sequence[Completed]) -> str:
    """Return the script for fish."""
    lines = [line for one in commands for line in _fish_lines(one)]
    return FISH.format(
        commands=" ".join(f"/{name}" for name in _names(commands)),
        actions=" ".join(_actions(commands)),
        lines="\n".join(lines),
    )


def _fish_lines(one: Completed) -> Iterator[str]:
    if len(one.path) == 1:
        yield f"complete -c bullpen -n __bullpen_at -f -a {one.path[0]} -d {shlex.quote(one.purpose)}"
    here = f"complete -c bullpen -n '__bullpen_at {'/'.join(one.path)}'"
    for word, purpose in one.words.items():
        yield f"{here} -f -a {shlex.quote(word)} -d {shlex.quote(purpose)}"
    for option in one.options:
        names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
        values = (
            f" -x -a {shlex.quote(' '.join(option.values))}" if option.values else " -r" if option.is_file else " -x"
        )
        yield f"{here} {names}{values if option.takes_value else ''} -d {shlex.quote(option.purpose)}"


FISH = """\
# Completion of bullpen for fish.
function __bullpen_at
    set -l place
    for word in (commandline -opc)[2..-1]
        switch "$place/$word"
            case {actions}
                set place $place/$word
            case {commands}
                set place $word
        end
    end
    test "$place" = "$argv[1]"
end
complete -c bullpen -n __bullpen_at -s h -l help -d 'show what there is'
complete -c bullpen -n __bullpen_at -s V -l version -d 'print the version'
{lines}
"""


def _names(commands: Sequence[Completed]) -> list[str]:
    return [one.path[0] for one in commands if len(one.path) == 1]


def _actions(commands: Sequence[Completed]) -> list[str]:
    return ["/".join(one.path) for one in commands if len(one.path) > 1]


SCRIPTS: dict[str, Callable[[Sequence[Completed]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
