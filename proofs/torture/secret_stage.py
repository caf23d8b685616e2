"""A home, a project and programs in the place of agents, with keys planted everywhere."""

import json
import os
import sys
from pathlib import Path

from proofs.torture.secret_keys import CUTTERS, NAMED, Key

MEMBERS = {"max": 'agent = "claude"', "cody": 'agent = "codex"', "tool": "", "sayer": "", "hanger": "", "quitter": ""}
MEMBERS |= dict.fromkeys(CUTTERS, "")
TIMEOUTS = "idle_timeout = 2\ntotal_timeout = 2\n"

Step = dict[str, object]

EXPORT = ("sessions", "export", "last", "--format")
COMMANDS: dict[str, tuple[str, ...]] = {
    "sessions": ("sessions",),
    "sessions-json": ("sessions", "--json"),
    "show": ("sessions", "show", "last", "--all"),
    "search": ("sessions", "search", "key"),
    "export-md": (*EXPORT, "md"),
    "export-html": (*EXPORT, "html"),
    "export-json": (*EXPORT, "json"),
    "export-prompts": (*EXPORT, "json", "--prompts"),
    **{f"explain-{turn}": ("explain", str(turn)) for turn in range(1, 8)},
    **{f"explain-json-{turn}": ("explain", str(turn), "--json") for turn in range(1, 8)},
    "prompt": ("explain", "3", "--prompt"),
    "fsck": ("fsck",),
    "check": ("check",),
    "check-json": ("check", "--json"),
    "doctor": ("doctor",),
    "broken-check": ("check", "broken.toml"),
}


def bugs() -> dict[str, str]:
    """Return programs that run a command in which a bug of ours meets a key, in a variable or in its message."""
    program = (
        "import os\n"
        "from bullpen.cli import main\n"
        "from bullpen.store.sqlite import SqliteStore\n"
        "def broken(*_):\n"
        "    key = os.environ['STRIPE_SECRET_KEY']\n"
        "    raise {}\n"
        "SqliteStore.__init__ = broken\n"
        "raise SystemExit(main(['sessions']))\n"
    )
    errors = {
        "variable": "RuntimeError('boom')",
        "message": "ValueError('cannot use ' + key)",
        "lookup": "KeyError(key)",
    }
    return {f"bug-{name}{debug}": program.format(error) for name, error in errors.items() for debug in ("", "-debug")}


def environment_of(folder: Path, keys: list[Key]) -> dict[str, str]:
    """Return the environment of a person with many keys."""
    home = folder / "home"
    return {
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "TMPDIR": str(folder / "temporary"),
        "LANG": "C.UTF-8",
        "PYTHONASYNCIODEBUG": "1",
        **{key.variable: key.value for key in keys if key.variable},
    }


def build(folder: Path, keys: list[Key], repository: Path) -> None:
    """Write everything."""
    for name in ("home", "project", "bin", "scripts", "reports", "outputs", "logs", "temporary"):
        (folder / name).mkdir()
    _write_files(folder / "project", keys)
    for member in MEMBERS:
        _write_agent(folder, member, keys, repository)
    (folder / "project" / "team.toml").write_text(_team(folder), encoding="utf-8")
    value = next(key.value for key in keys if key.variable == "GITHUB_TOKEN")
    broken = _team(folder).replace('env = ["', f'env = ["GITHUB_TOKEN={value}", "')
    (folder / "project" / "broken.toml").write_text(broken, encoding="utf-8")


def _write_files(project: Path, keys: list[Key]) -> None:
    for key in keys:
        if key.file:
            file = project / key.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"SECRET={key.value}\n", encoding="utf-8")


def _write_agent(folder: Path, member: str, keys: list[Key], repository: Path) -> None:
    """Write a program that notes its environment and then plays its script, the keys of its standard error included."""
    script = folder / "scripts" / f"{member}.json"
    script.write_text(json.dumps(_script(member, keys)), encoding="utf-8")
    cli = {"max": "claude", "cody": "codex"}.get(member, "text")
    words = [sys.executable, "-m", "bullpen.testing.agent", "--as", cli, "--script", str(script)]
    program = folder / "bin" / (cli if cli != "text" else member)
    program.write_text(
        "#!/bin/sh\n"
        f"env > {folder / 'reports' / member}.env\n"
        f'PYTHONPATH={repository / "src"} exec {" ".join(words)} "$@"\n',
        encoding="utf-8",
    )
    program.chmod(0o755)


def _script(member: str, keys: list[Key]) -> list[Step]:
    steps = {"error": "stderr", "output": "raw"}
    printed: list[Step] = [{steps[key.stream]: key.printed} for key in keys if key.printed_by == member]
    said: list[Step] = [{"say": f"The key is {key.value}."} for key in keys if key.is_said]
    ends: dict[str, list[Step]] = {
        "max": [{"say": "Done."}],
        "cody": [{"error": 401}],
        "tool": [{"exit": 1}],
        "sayer": [*said],
        "hanger": [{"hang": True}],
        "quitter": [{"kill_self": "SIGSEGV"}],
        **{cutter: [{"exit": 1}] for cutter in CUTTERS},
    }
    return [*printed, *ends[member]]


def _team(folder: Path) -> str:
    lines = ['name = "Secrets"', 'lead = "max"', "", "[[member]]", 'name = "kai"', 'type = "human"']
    for member, agent in MEMBERS.items():
        command = agent or f'command = ["{folder / "bin" / member}"]'
        env = f"env = {json.dumps(NAMED)}" if member == "tool" else ""
        lines += [
            "",
            "[[member]]",
            f'name = "{member}"',
            'type = "ai"',
            command,
            env,
            TIMEOUTS if member == "hanger" else "",
        ]
    return "\n".join(lines) + "\n"
