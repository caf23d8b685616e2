"""Several changes as one: with real agents, a real database and real repositories, in every door that lists them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.files.random_turns import git
from tests.view.shop import Shop

from bullpen.cli import main
from bullpen.view.changes import ALSO_BY_OTHERS, Changes, record_words
from bullpen.view.combined_changes import WITH_PEOPLES, combine, key_of

Printed = pytest.CaptureFixture[str]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def files(changes: Changes, member: str = "") -> dict[str, str]:
    group = next(one for one in changes.members if one.key == member) if member else changes.together
    return {file.title: file.about for file in group.files}


def test_what_was_changed_and_changed_back_is_nothing(shop: Shop, capsys: Printed) -> None:
    shop.play(("ann", "echo four >> a.txt"), ("bob", "printf 'one\\ntwo\\nthree\\n' > a.txt"))

    records, changes = shop.read()

    assert (changes.together.summary, changes.together.files, changes.together.is_known) == ("0 files", (), True)
    (combined,) = combine(records, Path(f"{shop.db}-files"))
    assert record_words(combined) == (
        f"All changes from turn 1 to turn 2 together: all files in {shop.work} are again what they were."
    )
    assert main(["diff", "1..2", "--db", str(shop.db)]) == 0
    assert capsys.readouterr().out.startswith("All changes from turn 1 to turn 2 together: all files in ")


def test_lines_that_several_turns_changed_are_one_diff(shop: Shop, capsys: Printed) -> None:
    shop.play(("ann", "echo four >> a.txt"), ("bob", "sed -i 's/four/FOUR/' a.txt; echo new > new.txt"))

    _, changes = shop.read()

    assert files(changes) == {"a.txt": "+1", "new.txt": "new, +1"}
    key = changes.together.parts[0]
    assert shop.part(key).changes.patch.count("+FOUR") == 1
    assert "four" not in shop.part(key).changes.patch
    for reference in ("all", "1..2", "1.."):
        assert main(["diff", reference, "--db", str(shop.db)]) == 0
        printed = capsys.readouterr().out
        assert "+ FOUR" in printed
        assert "four" not in printed
    assert main(["diff", "all", "--stat", "--db", str(shop.db)]) == 0
    assert capsys.readouterr().out.endswith("\na.txt  +1\nnew.txt  new, +1\n2 files, +2\n")


def test_a_file_that_moves_twice_has_moved_once(shop: Shop) -> None:
    shop.play(("ann", "mv b.txt c.txt"), ("ann", "mv c.txt d.txt; echo more >> d.txt"))

    _, changes = shop.read()

    assert files(changes) == {"b.txt → d.txt": "renamed, +1"}
    assert files(changes, "ann") == files(changes)
    assert changes.members[0].files[0].parts == changes.together.parts


def test_what_people_changed_in_between_is_part_of_it_and_said(shop: Shop) -> None:
    shop.play(("ann", "echo four >> a.txt"), ("people", "hand.txt"), ("ann", "echo five >> a.txt"))

    _, changes = shop.read()

    assert files(changes) == {"a.txt": "+2", "hand.txt": "new, +1"}
    assert changes.together.notes == (WITH_PEOPLES,)
    assert files(changes, "ann") == {"a.txt": "+2"}
    assert files(changes, "Somebody") == {"hand.txt": "new, +1"}


def test_only_files_that_nobody_else_changed_are_one_diff_for_a_member(shop: Shop) -> None:
    shop.play(("ann", "echo x > a.txt; echo x > own.txt"), ("bob", "echo y > a.txt"), ("ann", "echo z > own.txt"))

    _, changes = shop.read()
    ann, bob = changes.members

    assert files(changes, "ann") == {"a.txt": "+1 −3", "own.txt": "new, +1"}
    assert [file.parts for file in ann.files] == [("1",), changes.together.parts]
    assert (ann.notes, bob.notes) == ((ALSO_BY_OTHERS,), (ALSO_BY_OTHERS,))
    assert ann.summary == "2 files, +2 −3"


def test_each_folder_has_its_own(shop: Shop) -> None:
    shop.play(("ann", "echo 4 >> a.txt"), ("olga", "rm a.txt"), ("ann", "echo 5 >> a.txt"), ("olga", "rm b.txt"))

    records, changes = shop.read()

    assert [(file.folder, file.title, file.about) for file in changes.together.files] == [
        (str(shop.other), "a.txt", "deleted, −3"),
        (str(shop.other), "b.txt", "deleted, −20"),
        (str(shop.work), "a.txt", "+2"),
    ]
    parts = [shop.part(key) for key in changes.together.parts]
    assert [(part.changes.folder, len(part.changes.files)) for part in parts] == [
        (str(shop.work), 1),
        (str(shop.other), 2),
    ]
    assert [key_of(part) for part in parts] == [f"{records[0].number}-{records[2].number}", "2-4"]


def test_what_was_taken_back_after_somebody_changed_another_file_is_not_in_it(shop: Shop) -> None:
    shop.play(("ann", "echo four >> a.txt"), ("people", "hand.txt"), ("undo", "1"))

    _, changes = shop.read()

    assert files(changes) == {"hand.txt": "new, +1"}
    assert changes.together.notes == (WITH_PEOPLES,)


def test_the_users_repository_may_be_gone_and_is_never_written(shop: Shop) -> None:
    shop.play(("ann", "mkdir -p x/y; echo 1 > x/y/z; rm a.txt"), ("bob", "echo 2 > x/y/z; git commit -qam it"))
    before = sorted(shop.db.with_name("conversations.db-files").rglob("*"))

    expected = files(shop.read()[1])

    assert expected == {"a.txt": "deleted, −3", "x/y/z": "new, +1"}
    assert sorted(shop.db.with_name("conversations.db-files").rglob("*")) == before
    shutil.rmtree(shop.work / ".git")
    assert files(shop.read()[1]) == expected


def _gone(shop: Shop) -> None:
    shutil.rmtree(shop.db.with_name("conversations.db-files"))


def _emptied(shop: Shop) -> None:
    for objects in shop.db.with_name("conversations.db-files").glob("*/objects"):
        shutil.rmtree(objects)
        (objects / "info").mkdir(parents=True)
    git(shop.work, "gc", "-q", "--prune=now")


@pytest.mark.parametrize("lost", [_gone, _emptied])
def test_what_is_not_kept_any_more_is_listed_change_by_change_and_said(
    shop: Shop, capsys: Printed, lost: Callable[[Shop], None]
) -> None:
    shop.play(("ann", "echo four >> a.txt"), ("bob", "sed -i 's/four/FOUR/' a.txt"))
    lost(shop)

    _, changes = shop.read()

    assert files(changes) == {"a.txt": "+2 −1"}
    assert changes.together.parts == ("1", "2")
    assert "is listed change by change" in " ".join(changes.together.notes)
    assert main(["diff", "all", "--db", str(shop.db)]) == 0
    printed = capsys.readouterr().out
    assert "is listed change by change" in printed
    assert "+ four" in printed
    assert "+ FOUR" in printed
