"""What an agent did in a turn, as data."""

from bullpen.text.numbers import clock
from bullpen.turn_events import Event, Notice, TextDelta, Thinking, TodoItem, TodoList, ToolFinished, ToolStarted
from bullpen.view.steps import MOST_CHARACTERS, MOST_STEPS, Steps


def test_pieces_of_a_thought_are_one_step_and_a_tool_ends_where_it_began() -> None:
    steps = Steps(
        [
            Thinking("Let me "),
            Thinking("look."),
            ToolStarted(id="1", name="Bash", input={"command": "ls"}),
            ToolStarted(id="2", name="Edit", input={"file_path": "a.py", "new": "x"}),
            ToolFinished(id="1", output="a.py"),
            ToolFinished(id="2", failed=True, changed_files=("a.py",)),
            TextDelta("not a step"),
            TodoList((TodoItem("build", True), TodoItem("ship", False))),
            Notice(kind="retry", text="again"),
            Notice(kind="noise", text="nobody wants to know"),
        ]
    )

    assert [(step.kind, step.title, step.summary, step.output) for step in steps] == [
        ("thinking", "thinking", "Let me look.", "Let me look."),
        ("tool", "Bash", "ls", "a.py"),
        ("tool", "Edit", "a.py", ""),
        ("plan", "plan", "1 of 2 done", "☑ build\n☐ ship"),
        ("notice", "retry", "", "again"),
    ]
    assert steps.summary == "thinking · 2 tools · 1 failed · 1 file changed"


def test_a_command_is_shown_as_one_and_other_input_by_name() -> None:
    steps = Steps(
        [
            ToolStarted(id="1", name="Bash", input={"command": "ls", "timeout": 5}),
            ToolStarted(id="2", name="Grep", input={"pattern": "a b", "paths": ["x y", "z"], "most": 3}),
        ]
    )

    assert [step.input for step in steps] == ["$ ls", "pattern: a b\npaths: 'x y' z\nmost: 3"]


def test_no_agent_fills_the_memory() -> None:
    steps = Steps([ToolStarted(id=str(number), name="Bash") for number in range(2 * MOST_STEPS)])
    last = steps.add(ToolFinished(id=str(2 * MOST_STEPS - 1), output="x" * 10 * MOST_CHARACTERS))

    assert len(steps) == MOST_STEPS
    assert last is not None
    assert last.output == "x" * MOST_CHARACTERS + f"\n… {9 * MOST_CHARACTERS:,} more characters"


def test_a_tool_that_is_told_twice_is_one_step() -> None:
    started, finished = ToolStarted(id="1", name="Bash"), ToolFinished(id="1", output="ok")

    assert [step.output for step in Steps([started, finished, started, finished])] == ["ok"]


def test_the_answer_of_a_tool_that_nobody_saw_begin_is_kept() -> None:
    assert [step.output for step in Steps([ToolFinished(id="7", output="late")])] == ["late"]


def test_a_tool_that_only_changes_the_plan_is_a_step_only_if_it_fails() -> None:
    change: list[Event] = [
        ToolStarted(id="1", name="TodoWrite"),
        TodoList((TodoItem("build", False),)),
        ToolFinished(id="1", output="ok"),
    ]
    failing: list[Event] = [
        ToolStarted(id="2", name="TodoWrite"),
        ToolFinished(id="2", output="bad input", failed=True),
    ]

    assert [step.kind for step in Steps(change)] == ["plan"]
    assert [(step.title, step.failed) for step in Steps([*change, *failing])] == [("plan", False), ("TodoWrite", True)]


def test_retries_in_a_row_are_one_step_that_counts() -> None:
    steps = Steps()
    for number in (1, 2, 3):
        steps.add(Notice(kind="retry", text="no network", attempts=number, since=1_000))
    steps.add(Notice(kind="warning", text="hm"))
    steps.add(Notice(kind="retry", text="again", attempts=1, since=9_000))

    assert [step.output for step in steps] == [f"3 attempts since {clock(1_000)}: no network", "hm", "again"]
    counted = [Notice(kind="retry", text=text) for text in ("one", "two")]
    assert [step.output for step in Steps(counted)] == ["2 attempts: two"], "also those that nobody has counted"
