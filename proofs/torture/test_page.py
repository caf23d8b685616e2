"""The page says what was measured, and nothing else."""

from xml.etree import ElementTree

from msgspec.structs import replace
from proofs.torture.outcome import Outcome, Torture
from proofs.torture.page import Result, merged, page, picture, read_results


def outcome(_: object, __: int = 0) -> Outcome:
    return Outcome(tried=0, unit="floods")


def leaking(_: int) -> Outcome:
    return Outcome(tried=1, unit="floods", failures=("round 3: water in the boat",))


TORTURE = Torture(
    name="floods",
    does="It rains.",
    promise="it floats.",
    run=outcome,
    fault="a hole.",
    run_with_fault=leaking,
    seen_as="water in",
)
MEASURED = Result.of(
    TORTURE,
    Outcome(tried=12_000, unit="floods", figures={"wet": 7}),
    seed=6,
    seconds=90,
    fault_caught=True,
)


def test_a_class_that_ran_is_in_the_table_with_all_that_was_measured() -> None:
    text = page([MEASURED])

    row = f"| [floods](#floods) | 12,000 floods | 0 | yes | 6 | 1.5 | {MEASURED.date} |"
    assert row in text
    assert "| wet | 7 |" in text
    assert MEASURED.machine in text


def test_a_class_that_could_not_run_has_no_figures() -> None:
    text = page([replace(MEASURED, skipped="it did not rain", tried=0)])

    assert "Not measured: it did not rain." in text
    assert "| [floods]" not in text
    assert "| wet" not in text


def test_broken_promises_and_faults_that_nobody_caught_are_not_hidden() -> None:
    text = page([replace(MEASURED, failures=("it sank",), fault_caught=False)])

    assert "| 12,000 floods | 1 | **no** |" in text
    assert "- it sank" in text
    assert "**Not caught.**" in text


def test_a_new_run_replaces_the_old_one_and_leaves_the_others() -> None:
    other = replace(MEASURED, name="droughts")
    newer = replace(MEASURED, tried=5)

    assert merged([MEASURED, other], [newer]) == [other, newer]


def test_the_picture_is_one_and_shows_each_class() -> None:
    drawing = picture([MEASURED, replace(MEASURED, name="a < b", failures=("it sank",))])

    texts = [element.text for element in ElementTree.fromstring(drawing).iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if text in ("floods", "a < b", "0", "1")] == ["floods", "0", "a < b", "1"]


def test_the_page_in_the_docs_is_what_its_figures_say() -> None:
    from proofs.torture.page import PAGE, PICTURE

    results = read_results()
    assert PAGE.read_text(encoding="utf-8") == page(results)
    assert PICTURE.read_text(encoding="utf-8") == picture(results)


def test_only_what_the_planted_fault_leads_to_means_that_it_was_caught() -> None:
    assert TORTURE.catches_its_fault(6)
    assert not replace(TORTURE, seen_as="no sail").catches_its_fault(6)
    assert not replace(TORTURE, run_with_fault=outcome).catches_its_fault(6)
