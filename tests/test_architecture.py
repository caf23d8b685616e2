"""The folder tree is the architecture: who may import whom, and what importing costs."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "bullpen"

# Lowest layer first. A unit may import the ones named in its row, itself and the clock; one without a row fails.
MAY_IMPORT: dict[str, set[str]] = {
    "clock": set(),
    "messages": set(),
    "turn_events": set(),
    "acp_protocol": {"turn_events"},
    "memory": {"turn_events"},
    "file_changes": set(),
    "check_results": set(),
    "errors": {"turn_events"},
    "cache": set(),
    "config": set(),
    "permissions": set(),
    "git_settings": set(),
    "own_files": {"config"},
    "program_files": {"git_settings", "own_files", "real_paths"},
    "real_paths": set(),
    "approvals": {"turn_events"},
    "text": {"turn_events"},
    "sandbox": {"config", "permissions", "program_files"},
    "markers": {"text"},
    "context": {"cache", "errors", "markers", "memory", "messages", "text"},
    "agents": {
        *("acp_protocol", "approvals", "config", "context", "errors", "memory", "permissions", "program_files", "text"),
        *("real_paths", "sandbox", "turn_events"),
    },
    "callers": {"agents"},
    "files": {"config", "errors", "file_changes", "program_files", "text"},
    "tools": {"callers"},
    "prices": {"config", "errors", "turn_events"},
    "team": {
        *("agents", "approvals", "config", "context", "errors", "files", "markers", "permissions", "prices", "text"),
        *("sandbox", "turn_events"),
    },
    "routing": {"errors", "markers", "memory", "messages", "team", "text", "turn_events"},
    "store": {
        "approvals",
        "check_results",
        "context",
        "errors",
        "file_changes",
        "markers",
        "memory",
        "messages",
        "routing",
        "text",
        "tools",
        "turn_events",
    },
    "conversation": {
        *("agents", "context", "errors", "markers", "memory", "messages", "routing", "store", "team", "text"),
        *("approvals", "check_results", "file_changes", "files", "prices", "program_files", "tools", "turn_events"),
    },
    "view": {
        *("agents", "context", "conversation", "errors", "markers", "messages", "routing", "store", "team", "text"),
        *("approvals", "check_results", "file_changes", "files", "memory", "tools", "turn_events"),
    },
    "exchange": {
        *("agents", "context", "conversation", "errors", "markers", "messages", "routing", "store", "team", "text"),
        *("approvals", "check_results", "file_changes", "files", "memory", "turn_events", "view"),
    },
    "telemetry": {
        *("agents", "config", "conversation", "errors", "messages", "routing", "team", "text", "turn_events"),
    },
    "private_door": {"agents", "callers", "config", "conversation", "errors", "view"},
    "app": {
        *("agents", "config", "conversation", "errors", "file_changes", "files", "private_door", "store", "team"),
        "telemetry",
    },
    "database": {"config", "errors", "store"},
    "doctor": {"agents", "context", "errors", "team", "turn_events"},
    "rehearsal": {"agents", "app", "approvals", "conversation", "errors", "store", "team", "testing"},
    "terminal": {"config", "team", "text"},
}
# A door renders what `view` works out. It may not reach past it into the parts that a conversation is made of, and it
# may not use another door; only the command line opens the others.
INSIDE = {"agents", "context", "files", "routing", "store"}
FOR_DOORS = set(MAY_IMPORT) - INSIDE
MAY_IMPORT |= {"tui": set(FOR_DOORS), "web": set(FOR_DOORS)}
# Many machines are for those who ask for them: only the command line opens that, and what opens it is imported then.
MAY_IMPORT |= {
    "cluster": {
        *("agents", "app", "config", "context", "conversation", "doctor", "errors", "routing", "store", "team", "text"),
        *("approvals", "file_changes", "files", "memory", "messages", "permissions", "sandbox", "tools", "turn_events"),
    }
}
MAY_IMPORT |= {"cli": {*FOR_DOORS, "tui", "web", "testing", "cluster"}, "__main__": {"cli"}}
# Stages for tests may be built of anything.
MAY_IMPORT |= {"testing": set(MAY_IMPORT)}

IMPURE = {
    "asyncio",
    "ctypes",
    "multiprocessing",
    "os",
    "pathlib",
    "shutil",
    "signal",
    "socket",
    "subprocess",
    "threading",
}


def modules() -> list[Path]:
    return sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def dotted(path: Path) -> str:
    name = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
    return name.removesuffix(".__init__")


def unit(module: str) -> str:
    """Return the file or folder directly below bullpen that a module belongs to."""
    return module.split(".")[1] if "." in module else ""


@cache
def imported(path: Path) -> frozenset[str]:
    return frozenset(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written in full"
            yield node.module or ""


def imported_from_bullpen(path: Path) -> set[str]:
    return {name for name in imported(path) if name.startswith("bullpen.")}


def test_a_module_imports_only_what_its_layer_may() -> None:
    reached = {path: {unit(name) for name in imported_from_bullpen(path)} for path in modules()}
    too_far = {
        path: units - {unit(dotted(path)), "clock"} - MAY_IMPORT[unit(dotted(path))] for path, units in reached.items()
    }

    assert {dotted(path): units for path, units in too_far.items() if units} == {}


def users_of(*packages: str) -> set[str]:
    """Return the modules of ours that import one of these packages."""
    return {dotted(path) for path in modules() if {name.split(".")[0] for name in imported(path)} & set(packages)}


def test_only_telemetry_knows_of_traces_and_metrics() -> None:
    assert {unit(name) for name in users_of("opentelemetry", "prometheus_client")} == {"telemetry"}


def test_no_module_imports_itself_through_others() -> None:
    # The package's own file only forwards names to be imported later, so it is not part of the graph.
    graph = {dotted(path): imported_from_bullpen(path) for path in modules() if path.name != "__init__.py"}

    order = list(TopologicalSorter(graph).static_order())

    assert len(order) >= len(graph)


def test_only_what_is_for_many_machines_needs_their_packages() -> None:
    users = users_of("psycopg", "psycopg_pool", "procrastinate")

    assert {name for name in users if not name.startswith(("bullpen.cluster.", "bullpen.store.postgres."))} == set()


def test_the_store_in_postgresql_is_opened_in_one_place() -> None:
    importers = {path for path in modules() if any(".store.postgres" in name for name in imported(path))}
    others = {dotted(path) for path in importers if "postgres" not in path.parts and unit(dotted(path)) != "cluster"}

    assert others == {"bullpen.database"}


@pytest.mark.parametrize(
    "statement",
    [
        "import bullpen.app, bullpen.cli.chat, bullpen.cli.serve, bullpen.web.server, bullpen.tui.app",
        "from bullpen.cli import main; main(['sessions', 'list'])",
    ],
)
def test_a_conversation_on_one_machine_loads_nothing_of_many_machines(
    statement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path))
    loaded = modules_loaded_by(statement)

    of_many = ("bullpen.cluster", "bullpen.store.postgres", "psycopg", "procrastinate")
    assert {name for name in loaded if name.startswith(of_many)} == set()


def test_the_context_is_pure() -> None:
    assert {name for name in users_of(*IMPURE) if unit(name) == "context"} == set()


def modules_loaded_by(statement: str) -> set[str]:
    program = f"import sys\nbefore = set(sys.modules)\n{statement}\nprint(*(set(sys.modules) - before))"
    printed = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    return set(printed.split())


def loaded_by(statement: str) -> set[str]:
    return {name.split(".")[0] for name in modules_loaded_by(statement)}


def test_importing_the_context_loads_no_other_package() -> None:
    assert loaded_by("import bullpen.context") - set(sys.stdlib_module_names) == {"bullpen"}


def test_using_the_context_loads_nothing_heavier_than_msgspec() -> None:
    loaded = loaded_by("from bullpen.context import *") - loaded_by("import msgspec")

    assert loaded - set(sys.stdlib_module_names) == {"bullpen"}


@pytest.mark.parametrize("name", ["dataclasses", "logging", "re", "typing"])
def test_the_cheap_import_stays_cheap(name: str) -> None:
    assert name not in loaded_by("import bullpen.context")


def test_architecture_md_has_a_line_for_every_file_and_no_other() -> None:
    tree = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("```")[1]

    assert sorted(set(files_in(tree))) == sorted(str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.py"))


def files_in(tree: str) -> Iterator[str]:
    """Yield the path of every file that the drawing names, by how far it is indented."""
    folders: list[str] = []
    for line in tree.splitlines():
        entry = re.match(r"(?P<depth>[│ ]*)[├└]── (?P<names>\w+(?:/|\.py)(?:  \w+\.py)*)", line)
        if entry is None:
            continue
        del folders[len(entry["depth"]) // 4 :]
        for name in entry["names"].split():
            if name.endswith("/"):
                folders.append(name)
            else:
                yield "".join([*folders, name])
