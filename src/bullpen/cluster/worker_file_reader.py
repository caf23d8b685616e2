"""Reading a worker's file: what others may run on this machine, or everything that is wrong with the file."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bullpen.agents.registry import agent_spec
from bullpen.agents.spec import check_model
from bullpen.cluster.worker_file import WorkerFile
from bullpen.errors import UnknownAgent, WorkerFileProblem
from bullpen.team.given_file import open_given
from bullpen.team.keys import WORKER_KEYS
from bullpen.team.table_reader import TableReader, read_toml, shown
from bullpen.team.toml_lines import TomlLines

NOTHING_RUNS = "so nothing could run here"


def read_worker_file(path: Path) -> WorkerFile:
    """Return what a worker's file says, or raise WorkerFileProblem with everything that is wrong with it."""
    try:
        with open_given(path) as given:
            text = given.read().decode("utf-8-sig")
    except FileNotFoundError:
        raise WorkerFileProblem(path, "There is no such file. docs/cluster.md shows one.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise WorkerFileProblem(path, f"It cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    document, problem = read_toml(text)
    if problem is not None:
        raise WorkerFileProblem(path, str(problem))
    reader = _Reader(TomlLines(text))
    file = reader.file(document)
    if reader.problems:
        raise WorkerFileProblem(path, *map(str, sorted(reader.problems, key=lambda problem: problem.line or 0)))
    return file


class _Reader(TableReader):
    """Reads a document and collects every problem."""

    def file(self, document: Mapping[str, Any]) -> WorkerFile:
        """Return what the file says; use it only if there are no problems."""
        values = self.values(document, WORKER_KEYS, (), skip={"folders": dict})
        if not document.get("agents") and not document.get("commands"):
            self.problem((), f"there are neither agents nor commands, {NOTHING_RUNS}")
        for name in values.get("agents", ()):
            try:
                agent_spec(name)
            except UnknownAgent as error:
                self.problem(("agents",), str(error).rstrip("."))
        for name in values.get("models", ()):
            try:
                check_model(name)
            except ValueError as error:
                self.problem(("models",), str(error))
        if re.search("[\\s/:@]", values.get("name", "")):
            # It is written before the paths of its folders.
            self.problem(("name",), "must have no spaces, and none of / : @")
        return WorkerFile(folders=dict(self._folders(document.get("folders", {}))), **values)

    def _folders(self, table: object) -> Iterator[tuple[str, str]]:
        if not isinstance(table, dict) or not table:
            self.problem(("folders",), f"there is no table [folders] with the folders of agents, {NOTHING_RUNS}")
            return
        for name, folder in table.items():
            path = ("folders", name)
            if name in ("", ".", "..") or "/" in name:
                self.problem(path, f"{shown(name)} cannot be a name that a cwd begins with")
            elif not isinstance(folder, str) or not Path(folder).is_absolute():
                self.problem(path, f"must be an absolute path, not {shown(folder)}")
            elif not Path(folder).is_dir():
                self.problem(path, f"there is no folder {shown(folder)}")
            else:
                yield name, folder
