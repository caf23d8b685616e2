"""The page of benchmarks: a summary with reasons, and pictures that anybody can read."""

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest
from benchmarks.plot import LINE_HEIGHT, Plot
from benchmarks.report import Figure, page

from benchmarks import report

SVG = "{http://www.w3.org/2000/svg}"
LARGEST_PICTURE = 30_000


def plot(**series: list[tuple[float, float]]) -> Plot:
    return Plot(name="x", title="A <b> & c", across="messages", up="time", unit="seconds", series=series)


def figure(title: str, *, met: bool, plots: tuple[Plot, ...] = ()) -> Figure:
    return Figure(
        title=title,
        goal="at most 2",
        met=met,
        measured="3",
        reason="it waits for the disk.",
        columns=("what", "ratio"),
        rows=[("all", "3")],
        meaning="Three is more than two.",
        plots=plots,
    )


def texts(picture: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(picture).iter(f"{SVG}text"))


def test_the_summary_says_what_is_met_and_why_the_rest_is_not() -> None:
    written = page([figure("Fast, always", met=True), figure("Slow", met=False)])

    assert "1 of 2 goals are met." in written
    assert "| [Fast, always](#fast-always) | at most 2 | 3 | met |" in written
    assert "| [Slow](#slow) | at most 2 | 3 | **missed**: it waits for the disk. |" in written


def test_pictures_are_written_beside_the_page_and_old_ones_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(report, "PAGE", tmp_path / "benchmarks.md")
    monkeypatch.setattr(report, "PICTURES", tmp_path / "pictures")
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "bench-old.svg").touch()
    (tmp_path / "pictures" / "doctor.svg").touch()

    report.write([figure("Slow", met=False, plots=(plot(ours=[(1, 1), (10, 10)]),))])

    assert sorted(path.name for path in (tmp_path / "pictures").iterdir()) == ["bench-x.svg", "doctor.svg"]
    assert "(pictures/bench-x.svg)" in (tmp_path / "benchmarks.md").read_text()


def test_every_line_has_its_name_and_no_name_covers_another() -> None:
    names = {f"candidate {number}": [(1_000.0, 1e-3), (1e6, 1e-3 * (1 + number / 100))] for number in range(7)}

    labels = [text for text in texts(plot(**names).svg()) if (text.text or "").startswith("candidate")]

    assert [label.text for label in labels] == list(names)
    heights = sorted(float(label.attrib["y"]) for label in labels)
    assert all(lower - upper >= LINE_HEIGHT - 0.2 for upper, lower in pairwise(heights))


def test_what_hardly_grows_looks_flat() -> None:
    picture = plot(ours=[(1_000, 1.0), (1_000_000, 1.1)]).svg()

    heights = [float(height) for height in re.findall(r'cy="([\d.]+)"', picture)]
    assert abs(heights[0] - heights[1]) < 20


def test_a_picture_is_small_brings_its_background_and_asks_for_nothing() -> None:
    picture = plot(**{f"candidate {number}": [(10.0**n, 1e-3 * n) for n in range(1, 9)] for number in range(8)}).svg()

    assert len(picture.encode()) < LARGEST_PICTURE
    assert 'class="paper"' in picture
    assert "prefers-color-scheme:dark" in picture
    assert re.findall(r"https?://[^\"]*", picture) == ["http://www.w3.org/2000/svg"]
    assert texts(picture)[0].text == "A <b> & c"


def test_pictures_of_the_docs_are_small() -> None:
    sizes = {
        path.name: path.stat().st_size
        for path in (Path(report.__file__).parents[1] / "docs/pictures").glob("bench-*.svg")
    }

    assert {name: size for name, size in sizes.items() if size >= LARGEST_PICTURE} == {}


def test_some_figures_are_written_into_the_page_and_the_others_stay() -> None:
    before = page([figure("One", met=True), figure("Two", met=True), figure("Three", met=False)])

    after = report.updated(before, [figure("Two", met=False), figure("Four", met=True)])

    assert "2 of 4 goals are met." in after
    assert after.count("\n## Two\n") == after.count("| [Two](") == 1
    assert after.split("\n## Two\n")[1].startswith("\nGoal: at most 2. **Missed.**")
    assert after.split("\n## One\n")[1].startswith("\nGoal: at most 2. **Met.**")
    assert after.rindex("## Four") > after.rindex("## Three")
    assert report.updated(after, [figure("Four", met=True)]) == after
