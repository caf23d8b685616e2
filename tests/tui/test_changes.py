"""What was changed in the files, on the full screen: below messages, line by line, and all of it."""

import json

import pytest
from msgspec.structs import replace
from tests.tui.stage import Scene, Stage
from tests.view.changed import BY_HAND, BY_HAND_PATCH, LOGIN_PATCH, RECORDS, TEST, TEST_PATCH, record
from textual.widgets import OptionList

from bullpen.conversation.events import FilesChanged
from bullpen.file_changes import ChangeRecord, FileChange
from bullpen.store.base import Store
from bullpen.tui.change_line import ChangedLine
from bullpen.tui.diff_screen import DiffScreen
from bullpen.tui.diff_view import DiffView

LOGIN, MOVED, PICTURE = RECORDS[0].changes.files
BIG = FileChange(path="big.py", kind="added", added=10_000)


def big_patch(rows: int) -> str:
    lines = "".join(f"+    return {number}  # 深 {'long ' * (number % 20)}\n" for number in range(1, rows + 1))
    head = "diff --git a/big.py b/big.py\nnew file mode 100644\n--- /dev/null\n+++ b/big.py\n"
    return f"{head}@@ -0,0 +1,{rows} @@\n{lines}"


async def store(scene: Scene, *records: ChangeRecord) -> list[ChangeRecord]:
    def add(database: Store, conversation_id: str) -> list[ChangeRecord]:
        owner = database.conversation(conversation_id).owner
        return [database.add_changes(conversation_id, one, owner=owner) for one in records]

    return await scene.conversation.read(add)


async def one_turn(scene: Scene, *more: ChangeRecord) -> list[ChangeRecord]:
    """Let max answer; then store that its turn changed three files, and what more is to be stored."""
    await scene.say("Go.")
    await scene.quiet()
    await scene.sees("Yes.")
    first = record("turn", LOGIN, MOVED, PICTURE, patch=LOGIN_PATCH, turn="1", member="max", after=2)
    stored = await store(scene, first, *more)
    for one in stored:
        await tell(scene, one)
    return stored


async def tell(scene: Scene, changed: ChangeRecord) -> None:
    scene.conversation._journal.publish(FilesChanged.of(changed))
    await scene.settled()


@pytest.fixture
def with_max(stage: Stage) -> Stage:
    stage.agent("max", [{"say": "Yes."}], more='permissions = "read-only"')
    return stage


def test_a_message_says_what_its_turn_changed_and_one_key_shows_it(with_max: Stage) -> None:
    async def story(scene: Scene) -> None:
        await one_turn(scene)
        await scene.sees("± 3 files, +2 −1")
        await scene.press("ctrl+r")
        await scene.sees("max changed 3 files in turn 1 (+2 −1).", "src/login.py  +2 −1  file 1 of 3")
        await scene.sees("2    −     return None", '2 +     cookie = "\ufffd[2J深"')
        await scene.sees("notes b.txt → moved b.txt", "A binary file: its lines are not shown.")
        await scene.press("n")
        await scene.sees("file 2 of 3")
        await scene.press("p", "escape")
        assert not isinstance(scene.app.screen, DiffScreen)

    conversation = with_max.play(story)

    async def again(scene: Scene) -> None:
        await scene.sees("± 3 files, +2 −1")
        line = scene.app.screen.query_one(ChangedLine)
        line.focus()
        await scene.press("enter")
        await scene.sees("return None")

    with_max.play(again, resume=conversation)


def test_each_change_is_one_line_after_its_message_also_what_people_changed_and_took_back(with_max: Stage) -> None:
    async def story(scene: Scene) -> None:
        undo = record("undo", TEST, turn="1", member="max", after=2, person="kim")
        first, *_ = await one_turn(scene, record("people", BY_HAND, patch=BY_HAND_PATCH, after=2), undo)
        await scene.sees("± Somebody changed 1 file between turns (+1 −1).", "± kim took back turn 1: 1 file (+2).")
        # Told twice, it is still one line.
        await tell(scene, replace(first, changes=replace(first.changes, files=(LOGIN,))))
        await scene.sees("± 1 file, +2 −1")
        assert len(scene.app.screen.query(ChangedLine)) == 3

    with_max.play(story)


def test_old_and_new_stand_beside_each_other_where_there_is_room(with_max: Stage) -> None:
    async def story(scene: Scene) -> None:
        await one_turn(scene)
        await scene.press("ctrl+r")
        await scene.sees("return None")
        await scene.press("s")
        await scene.sees("│")
        (row,) = [line for line in scene.text.split("\n") if "return None" in line]
        assert "cookie = " in row
        await scene.pilot.resize_terminal(80, 24)
        await scene.until(lambda: "│" not in scene.text)
        await scene.press("s")
        await scene.sees("Side by side needs")

    with_max.play(story)


def test_the_turns_before_and_after_are_one_key_away(with_max: Stage) -> None:
    async def story(scene: Scene) -> None:
        await one_turn(scene, record("people", BY_HAND, patch=BY_HAND_PATCH, after=2))
        await scene.press("ctrl+r")
        await scene.sees("return None")
        await scene.press("right_square_bracket")
        await scene.sees("+ # the end")
        await scene.press("right_square_bracket")
        await scene.sees("Nothing was changed after.")
        await scene.press("left_square_bracket")
        await scene.sees("return None")

    with_max.play(story)


def test_a_comment_on_a_line_is_said_to_the_member_who_wrote_it(with_max: Stage) -> None:
    async def story(scene: Scene) -> None:
        await one_turn(scene)
        await scene.press("ctrl+r")
        await scene.sees("return None")
        await scene.press("c")
        await scene.sees("Move to a line of a file to write about it.")
        await scene.press("down", "down", "down", "down", "c")
        await scene.sees("To max, about src/login.py:2")
        await scene.type("Why?")
        await scene.press("ctrl+s")
        await scene.sees("Said to max.")
        await scene.quiet()
        assert isinstance(scene.app.screen, DiffScreen)

    conversation = with_max.play(story)

    async def again(scene: Scene) -> None:
        said = await scene.conversation.read(lambda database, chat: database.messages(chat))
        assert [one.message.content.split("\n")[0] for one in said] == ["Go.", "Yes.", "@max `src/login.py:2`", "Yes."]
        assert said[2].message.content.endswith("Why?")

    with_max.play(again, resume=conversation)


def test_everything_that_was_changed_is_listed_per_turn_per_member_and_all_together(with_max: Stage) -> None:
    async def story(scene: Scene) -> None:
        await one_turn(scene, record("people", BY_HAND, patch=BY_HAND_PATCH, after=2))
        await scene.press("f12")
        await scene.sees("Changes  3 files, +3 −2", "turn 1 · max  3 files, +2 −1", "Somebody, between turns  1 file")
        await scene.press("2")
        await scene.sees("max  3 files, +2 −1", "Somebody  1 file, +1 −1")
        await scene.press("3")
        await scene.sees("All together  3 files, +3 −2", "src/login.py  +3 −2")
        await scene.press("end", "enter")
        await scene.sees("file 1 of 3", "# the end")
        await scene.press("escape")
        await scene.say("/changes")
        await scene.sees("per member")

    with_max.play(story)


def test_what_several_turns_changed_is_one_diff_all_together(stage: Stage) -> None:
    work = stage.folder / "work"
    work.mkdir()
    program = ["/bin/sh", "-c", "cat > /dev/null; date +%N > time.txt; echo old > again.txt; echo Done."]
    stage._members.append(
        f'[[member]]\nname = "max"\ncommand = {json.dumps(program)}\ncwd = "work"\npermissions = "full"\n'
    )

    async def story(scene: Scene) -> None:
        for _ in range(2):
            await scene.say("Go.")
            await scene.quiet()
        await scene.sees("± 2 files, +2", "± 1 file, +1 −1")
        await scene.press("f12")
        await scene.sees("Changes  2 files, +2 ")
        await scene.press("3", "end", "enter")
        await scene.sees("All changes from turn 1 to turn 2 together: 2 files in /", "time.txt  new, +1  file 2 of 2")
        await scene.press("u")
        await scene.sees("This cannot be taken back here.")
        await scene.press("left_square_bracket")
        await scene.sees("Nothing was changed before.")
        await scene.press("escape")
        await scene.say("/diff 1..2")
        await scene.sees("All changes from turn 1 to turn 2 together: 2 files in /")

    stage.play(story)


def test_without_changes_the_keys_say_so(with_max: Stage) -> None:
    async def story(scene: Scene) -> None:
        await scene.press("ctrl+r")
        await scene.sees("No change of files is recorded there.")
        await scene.press("f12")
        await scene.sees("No change of files is recorded in this conversation.")

    with_max.play(story)


def test_thousands_of_lines_are_moved_in_like_ten(with_max: Stage) -> None:
    async def story(scene: Scene) -> None:
        await one_turn(scene)
        await store(scene, record("turn", BIG, patch=big_patch(3_000), turn="1", member="max", after=2))
        await scene.say("/diff all")
        await scene.sees("src/login.py")
        view = scene.app.screen.query_one(DiffView)
        await scene.press("end", "up", "up")
        await scene.sees("3000 +", "return 3000")
        await scene.press("s", "pageup", "pageup", "s", "home")
        await scene.sees("return None")
        assert len(view.layout_now.lines) > 3_000
        # Only what was seen has been coloured.
        assert len(view.layout_now._colored) < 10

    with_max.play(story)


def test_no_line_is_lost_or_obeyed_at_any_width(with_max: Stage) -> None:
    text = "\t" + "深a\x1b[2J\u202e" * 30 + "END"
    patch = f"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-{text}\n+{text}\r\n"
    changed = record("turn", FileChange(path="x", kind="changed"), patch=patch, turn="1", member="max", after=2)

    async def story(scene: Scene) -> None:
        (_, stored) = await one_turn(scene, changed)
        for width in (30, 80, 120, 200):
            await scene.pilot.resize_terminal(width, 60)
            scene.app.push_screen(DiffScreen([stored], scene.conversation))
            await scene.sees("x  changed  file 1 of 1")
            await scene.until(lambda: shown(scene).count("深") == 60 and "END␍" in shown(scene))
            assert shown(scene).count("END") == 2
            assert not set(scene.text) & set("\x1b\u202e\r\t")
            await scene.press("escape")

    with_max.play(story)


def shown(scene: Scene) -> str:
    return "".join(line[8:].rstrip() for line in scene.text.split("\n")[4:-1])


def test_a_new_file_is_all_added(with_max: Stage) -> None:
    async def story(scene: Scene) -> None:
        await one_turn(scene, record("turn", TEST, patch=TEST_PATCH, turn="1", member="max", after=2))
        await scene.press("ctrl+r")
        await scene.sees("test_login.py", "1 + def test_login():")

    with_max.play(story)


def test_a_key_in_the_diff_takes_a_turn_back_and_brings_it_back(stage: Stage) -> None:
    work = stage.folder / "work"
    work.mkdir()
    file = work / "new.txt"
    program = ["/bin/sh", "-c", "cat > /dev/null; echo one > new.txt; echo Done."]
    stage._members.append(
        f'[[member]]\nname = "max"\ncommand = {json.dumps(program)}\ncwd = "work"\npermissions = "full"\n'
    )

    async def story(scene: Scene) -> None:
        await scene.say("Go.")
        await scene.quiet()
        await scene.sees("± 1 file, +1")
        await scene.press("ctrl+r")
        await scene.sees("1 + one")
        await scene.press("u")
        await scene.sees("u again takes back what turn 1")
        assert file.exists()
        await scene.press("u")
        await scene.sees("kim took back turn 1: 1 file (−1).")
        assert not file.exists()
        await scene.press("u", "u")
        await scene.sees("kim brought back turn 1: 1 file (+1).")
        assert file.read_text() == "one\n"

    stage.play(story)


def test_more_lines_than_are_shown_are_cut_and_that_is_said(with_max: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bullpen.tui.diff_layout.MOST_ITEMS", 1_000)
    head = "diff --git a/big.py b/big.py\n--- a/big.py\n+++ b/big.py\n@@ -0,0 +1,1100 @@\n"
    patch = head + "+\n" * 1_100
    changed = record("turn", BIG, patch=patch, turn="1", member="max", after=2)

    async def story(scene: Scene) -> None:
        (_, stored) = await one_turn(scene, changed)
        scene.app.push_screen(DiffScreen([stored], scene.conversation))
        await scene.sees("big.py  new, +10,000")
        await scene.press("end")
        await scene.sees("There is more than is shown here")

    with_max.play(story)


def test_the_list_of_all_changes_grows_while_it_is_looked_at(with_max: Stage) -> None:
    async def story(scene: Scene) -> None:
        await one_turn(scene)
        await scene.say("/changes")
        await scene.sees("turn 1 · max  3 files")
        await scene.press("down", "down")
        (added,) = await store(scene, record("people", BY_HAND, patch=BY_HAND_PATCH, after=2))
        await tell(scene, added)
        await scene.sees("Somebody, between turns  1 file", "turn 1 · max  3 files")
        listed = scene.app.screen.query_one(OptionList)
        assert "Somebody, between turns" in str(listed.get_option_at_index(0).prompt), "the latest comes first"
        assert listed.highlighted == 4, "the person is at the same file, below the two lines that came"
        await scene.press("3")
        (again,) = await store(scene, record("people", TEST, patch=TEST_PATCH, after=2))
        await tell(scene, again)
        await scene.sees("All together  4 files")

    with_max.play(story)
