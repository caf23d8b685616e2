"""The commands in docs/templates.md work, with a program that follows a script in place of Claude Code."""

from pathlib import Path

from tests.test_cookbook import Shop, follow
from tests.test_docs import ROOT

from bullpen.team.templates import templates
from bullpen.testing.stage import Script

PAGE = ROOT / "docs" / "templates.md"
REVIEW: Script = [{"say": "price.py: a magic number."}]
ARGUMENT: Script = [{"say": "Floats round, integers do not."}]
APPROVE: Script = [{"say": "[VERDICT: approve]"}]
VETO: Script = [{"say": "price.py:2 has a key in it. Read it from the environment.\n\n[VERDICT: changes]"}]
CLAUDE: list[Script] = [
    *(REVIEW, REVIEW),
    [{"say": "Two findings: one must change, one is a matter of taste."}],
    [{"write_file": {"path": "coffee.py", "text": "COFFEE = 2\n"}}, {"say": "Built. [NEXT: reviewer]"}],
    [{"say": "coffee.py:1 must be 3.\n\n[VERDICT: changes]"}],
    [{"write_file": {"path": "coffee.py", "text": "COFFEE = 3\n"}}, {"say": "Mended."}],
    APPROVE,
    [{"say": "One line in price.py. [NEXT: builder]"}],
    [{"write_file": {"path": "price.py", "text": "PRICE = 3\n"}}, {"say": "Built."}],
    [{"write_file": {"path": "price.py", "text": "PRICE = 2\n"}}, {"say": "Mended."}],
    *(ARGUMENT, ARGUMENT),
    [{"say": "Yes: integers. What would change my mind: a currency with fractions of a cent."}],
    *(APPROVE, APPROVE, VETO, VETO),
    [{"say": "The test wants 2. [NEXT: checker]"}],
    [{"say": "**Cause**: price.py:1 is 1, and the test wants 2."}],
]
"""What the only agent does on the page, turn by turn. Those who answer at once say the same."""


def test_every_template_on_the_page_works(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    (tmp_path / "bin" / "codex").unlink()
    shop.play(claude=CLAUDE)
    shop.write("Makefile", "test:\n\tgrep -q 2 price.py\n")
    # It need not be installed.
    make = tmp_path / "bin" / "make"
    make.write_text("#!/bin/sh\ngrep -q 2 price.py || exit 2\n", encoding="utf-8")
    make.chmod(0o755)
    shop.write("ci.log", "make test\nmake: *** [Makefile:2: test] Error 1\n")

    follow(PAGE, shop)

    assert shop.run("git show HEAD:price.py").stdout == "PRICE = 2\n"
    assert shop.run("git log --format=%s").stdout.splitlines()[0] == "Correct the price"
    assert len(list((tmp_path / "claude.turns").glob("prompt-*"))) == len(CLAUDE)


def test_the_page_lists_every_template() -> None:
    rows = PAGE.read_text(encoding="utf-8").partition("|---|---|\n")[2].partition("\n\n")[0].splitlines()

    purposes = [f"| `{one.name}` | {one.purpose[:-1]} |" for one in templates()]
    assert [row.replace(". The default", "") for row in rows] == purposes
