"""A worker's file is read whole, or everything that is wrong with it is said at once, with lines."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from bullpen.cluster.orders import Work
from bullpen.cluster.worker_file import WorkerFile
from bullpen.cluster.worker_file_reader import read_worker_file
from bullpen.errors import NotAllowedHere, WorkerFileProblem


def problems_of(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "worker.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(WorkerFileProblem) as raised:
        read_worker_file(path)
    assert str(path) in str(raised.value)
    return list(raised.value.problems)


def test_everything_in_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "worker.toml"
    path.write_text(
        'name = "box"\nagents = ["claude"]\ncommands = [["/opt/tool", "--fast"]]\npermissions = "edit"\n'
        'allow = ["npm test"]\narguments = ["-v"]\nmodels = ["opus"]\nenv = ["ANTHROPIC_*"]\nat_once = 2\n'
        f'[folders]\napp = "{tmp_path}"\n',
        encoding="utf-8",
    )

    assert read_worker_file(path) == WorkerFile(
        name="box",
        agents=("claude",),
        commands=(("/opt/tool", "--fast"),),
        permissions="edit",
        allow=("npm test",),
        models=("opus",),
        arguments=("-v",),
        env=("ANTHROPIC_*",),
        at_once=2,
        folders={"app": str(tmp_path)},
    )


def test_all_that_is_wrong_is_said_at_once_with_lines(tmp_path: Path) -> None:
    said = problems_of(
        tmp_path,
        'permision = ["claude"]\nagents = ["claudio"]\npermissions = "everything"\nat_once = 0\n'
        'env = ["sk-secret-key"]\ncommands = ["/opt/tool --fast"]\n\n'
        '[folders]\napp = "relative"\nweb = "/does/not/exist"\n',
    )

    assert said[0] == "line 1, permision: there is no such key. Did you mean permissions?"
    assert "line 2, agents: " in said[1]
    assert "claudio" in said[1]
    assert said[2] == """line 3, permissions: must be "read-only" or "edit" or "ask" or "full", not 'everything'"""
    assert said[3] == "line 4, at_once: must be a whole number of at least 1, not 0"
    assert said[4].startswith("line 5, env: must be a list of variable names")
    assert "sk-secret-key" not in said[4]
    assert said[5].startswith("line 6, commands: must be a list of commands")
    assert said[6] == "line 9, folders.app: must be an absolute path, not 'relative'"
    assert said[7] == "line 10, folders.web: there is no folder '/does/not/exist'"
    assert len(said) == 8


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["neither agents nor commands", "no table [folders]"]),
        ("agents = [", ["this is not valid TOML"]),
        ('agents = ["claude"]\nfolders = 3\n', ["no table [folders]"]),
    ],
)
def test_a_file_with_which_nothing_could_run_is_refused(tmp_path: Path, text: str, expected: list[str]) -> None:
    said = problems_of(tmp_path, text)

    assert len(said) == len(expected)
    assert all(part in one for part, one in zip(expected, said, strict=True))


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(WorkerFileProblem, match="There is no such file"):
        read_worker_file(tmp_path / "worker.toml")


def test_a_model_that_could_be_an_option_is_a_problem_of_the_file(tmp_path: Path) -> None:
    said = problems_of(tmp_path, f'agents = ["qwen"]\nmodels = ["a", "--yolo", "b "]\n[folders]\napp = "{tmp_path}"\n')

    assert said == [
        "line 2, models: '--yolo' is not a model name: it would be read as an option",
        "line 2, models: 'b ' is not a model name: it must be one line without spaces around it",
    ]


@pytest.mark.parametrize("model", ["--include-directories=/etc", "opus-4", "opus ", ""])
def test_a_model_that_the_file_does_not_list_is_refused(tmp_path: Path, model: str) -> None:
    file = WorkerFile(folders={"app": str(tmp_path)}, agents=("qwen",), models=("opus",))
    work = Work(member="max", prompt="Hello.", agent="qwen", model=model, idle_timeout=60, total_timeout=60)

    with pytest.raises(NotAllowedHere, match=re.escape(f"the model {model!r} is not among its models")):
        file.check(work)
    for listed in ("opus", None):
        file.check(replace(work, model=listed))
