"""What an agent did, as data."""

from bullpen.tui.work import MOST_KEPT, MOST_STEPS, Work
from bullpen.turn_events import Notice, TextDelta, Thinking, TodoItem, TodoList, ToolFinished, ToolStarted


def test_pieces_of_a_thought_are_one_step_and_a_tool_ends_where_it_began() -> None:
    work = Work(
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

    assert [(step.name, step.summary, step.text) for step in work.steps] == [
        ("thinking", "Let me look.", "Let me look."),
        ("Bash", "ls", "a.py"),
        ("Edit", "a.py", ""),
        ("todo", "☑ build ☐ ship", "☑ build\n☐ ship"),
        ("notice", "again", "again"),
    ]
    assert work.summary == "thinking · 2 tools · 1 failed · 1 file changed"


def test_a_command_is_shown_as_one_and_other_input_as_json() -> None:
    work = Work(
        [ToolStarted(id="1", name="Bash", input={"command": "ls\x1b"}), ToolStarted(id="2", name="X", input={"a": 1})]
    )

    assert [step.input_text for step in work.steps] == ["$ ls\ufffd", '{\n  "a": 1\n}']


def test_no_agent_fills_the_memory() -> None:
    work = Work([ToolStarted(id=str(number), name="Bash") for number in range(2 * MOST_STEPS)])
    work.take(ToolFinished(id=str(2 * MOST_STEPS - 1), output="x" * 10 * MOST_KEPT))

    assert len(work.steps) <= MOST_STEPS
    assert len(work.steps[-1].text) == MOST_KEPT


def test_a_tool_that_is_told_twice_is_one_step() -> None:
    started, finished = ToolStarted(id="1", name="Bash"), ToolFinished(id="1", output="ok")

    assert [step.text for step in Work([started, finished, started, finished]).steps] == ["ok"]


def test_the_answer_of_a_tool_that_nobody_saw_begin_is_kept() -> None:
    assert [step.text for step in Work([ToolFinished(id="7", output="late")]).steps] == ["late"]
