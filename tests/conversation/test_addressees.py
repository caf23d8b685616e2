"""Who will be asked, as a composer shows it before Enter."""

import pytest
from tests.conversation.stage import Stage, tell

from bullpen.view.addressees import LONGEST, Addressees, addressees


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Hello", "→ max (max leads the team.)"),
        ("@sarah please look", "→ sarah"),
        ("@sarah, then @max", "→ sarah, then max"),
        ("[NEXT: max & sarah, lee]", "→ max & sarah, then lee"),
        ("@lee, what do you think?", "→ lee"),
        ("@lee decides, then @max builds", "→ lee, then max"),
        ("@all hands", "→ all"),
        ("@sarha look", "→ nobody. Nobody here is called 'sarha'. Did you mean sarah?"),
        ("Hello @", "→ max (max leads the team.)"),
        ("@sarah, then @m", "→ sarah"),
        ("Add a thing, and @sarah too", "→ max, then sarah (max leads the team.)"),
        ("mail kim@s", "→ max (max leads the team.)"),
        ("", None),
        (" \n", None),
        ("/cancel max", None),
        ("/unknown", None),
        ("x" * (LONGEST + 1), None),
    ],
)
async def test_who_will_be_asked(stage: Stage, text: str, line: str | None) -> None:
    stage.people_and_agents("kim lee", "max sarah ada")
    async with stage.open() as conversation:
        found = addressees(conversation, text, "kim")

        assert (None if found is None else found.line) == line


def test_a_line_that_is_cut_loses_its_reason_first() -> None:
    found = Addressees(steps=(("max",),), reason="max leads the team.", queued="max waits for your answer")
    assert found.line == "→ max · max waits for your answer (max leads the team.)"


async def test_it_is_who_is_asked_then(stage: Stage) -> None:
    stage.people_and_agents("kim", "max sarah")
    async with stage.open() as conversation:
        await tell(conversation, "@sarah hello")
        found = addressees(conversation, "And now?")

        assert found is not None
        assert found.line == "→ sarah (sarah spoke to you last.)"
        assert (await tell(conversation, "And now?"))[-1] == "sarah: I am sarah."
