"""All that an agent says in a turn is its message, whichever CLI it is, and its last hand-over counts."""

import pytest
from tests.conversation.stage import Stage, said, tell

from bullpen.conversation.events import Said
from bullpen.conversation.reply_markers import reply_markers, text_places
from bullpen.routing.reviews import verdict_of

TOOL = {"tool": {"name": "Bash", "input": {"command": "ls"}, "output": "ok"}}


@pytest.mark.parametrize("cli", ["claude", "codex", "gemini"])
async def test_what_it_says_before_a_tool_is_stored_and_given_to_others(
    stage: Stage, cli: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.put_on_the_path(cli, monkeypatch)
    stage.person("kim")
    stage.agent("a", [{"say": "FINDINGS in x.py. [NEXT: b]"}, TOOL, {"say": "Understood."}], agent=cli)
    stage.agent("b", "Thanks.")
    async with stage.open() as conversation:
        whole = "a: FINDINGS in x.py. [NEXT: b]\n\nUnderstood."
        assert await tell(conversation, "Look. [NEXT: a]") == ["kim: Look. [NEXT: a]", whole, "b: Thanks."]
    assert "FINDINGS in x.py." in stage.prompt("b")


async def test_a_member_may_want_only_the_last_words(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.put_on_the_path("gemini", monkeypatch)
    stage.person("kim")
    stage.agent("a", [{"say": "Let me look. [NEXT: b]"}, TOOL, {"say": "Done."}], agent="gemini", reply="last")
    stage.agent("b", "Thanks.")
    async with stage.open() as conversation:
        await tell(conversation, "Look. [NEXT: a]")
        assert (await said(conversation))[1:] == ["a: Done."]


@pytest.mark.parametrize(("reply", "places"), [("all", {"textsAt": [14]}), ("last", None)])
async def test_the_places_of_its_texts_are_stored_with_it_if_it_has_several(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, reply: str, places: object
) -> None:
    stage.put_on_the_path("gemini", monkeypatch)
    stage.person("kim")
    stage.agent("a", [{"say": "Let me look."}, TOOL, {"say": "Done."}], agent="gemini", reply=reply)
    stage.agent("b", "One text.")
    async with stage.open() as conversation:
        await tell(conversation, "Look. [NEXT: a, b]")
        stored = await conversation.messages()
    assert [one.message.extra for one in stored] == [None, places, None]


@pytest.mark.parametrize(
    ("content", "texts", "places"),
    [
        ("One.", ["One."], None),
        ("A\n\nB\n\nC", ["A\n\n", "B\n\n", "C"], {"textsAt": [3, 6]}),
        ("A note.\n\nA\n\nB", ["A\n\n", "B"], {"textsAt": [12]}),
    ],
)
def test_places_are_those_in_the_message(content: str, texts: list[str], places: object) -> None:
    assert text_places(content, texts) == places


async def test_the_last_hand_over_counts_and_it_is_said_that_another_differed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.put_on_the_path("gemini", monkeypatch)
    stage.people_and_agents("kim", "b c")
    stage.agent("a", [{"say": "To b. [NEXT: b]"}, TOOL, {"say": "No, to c. [NEXT: c]"}], agent="gemini")
    async with stage.open() as conversation:
        with conversation.viewing() as viewer:
            await tell(conversation, "Look. [NEXT: a]")
        notes = [note async for one in viewer if isinstance(one.event, Said) for note in one.event.notes]
        assert [text.partition(":")[0] for text in await said(conversation)] == ["kim", "a", "c"]
    assert "It handed over to b before a tool, and to c after it. The last one counts." in notes


def test_markers_of_one_text_are_as_ever() -> None:
    markers, notes = reply_markers(["[NEXT: a] [NEXT: b]"])

    assert ([len(group) for group in markers.next], notes) == ([1, 1], ())


@pytest.mark.parametrize(
    ("texts", "goes_to", "is_said"),
    [
        (["To a. [NEXT: a]\n\n", "To b. [NEXT: b]\n\n", "Done."], ["b"], True),
        (["To a. [NEXT: a]\n\n", "To b. [NEXT: b]\n\n", "[NEXT: c, d]"], ["c", "d"], True),
        (["给 a。［NEXT：a］\n\n", "看完了。［NEXT：b］\n\n", "好。"], ["b"], True),
        (["[NEXT: a]\n\n", "[NEXT: a]\n\n", "Done."], ["a"], False),
        (["[NEXT: a]\n\n", "> [NEXT: b]\n\n", "`[NEXT: c]`"], ["a"], False),
        (["```\n[NEXT: a]\n```\n\n", "Done. [NEXT: b]"], ["b"], False),
    ],
)
def test_the_last_text_that_hands_over_counts(texts: list[str], goes_to: list[str], is_said: bool) -> None:
    markers, notes = reply_markers(texts)

    assert (list(markers.addressees), bool(notes)) == (goes_to, is_said)


@pytest.mark.parametrize(
    ("texts", "verdict"),
    [
        (["Fine.\n[VERDICT: approve]\n\n", "[NEXT: kim]"], None),
        (["Fine.\n[VERDICT: approve]\n\n", "Let me look again."], None),
        (["[VERDICT: changes]\n\n", "Fine now.\n[VERDICT: approve]"], None),
        (["I look.\n\n", "Fine.\n[VERDICT: approve]\n[NEXT: kim]"], "approve"),
    ],
)
def test_a_verdict_counts_only_at_the_end_of_the_last_text(texts: list[str], verdict: str | None) -> None:
    assert verdict_of("".join(texts), reply_markers(texts)[0]) == verdict


async def test_an_answer_that_may_be_cut_is_stored_and_people_are_told_but_not_the_agent(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.put_on_the_path("gemini", monkeypatch)
    stage.people_and_agents("kim", "b")
    renamed = {"unknown_event": {"type": "message", "role": "assistant", "words": "er"}}
    stage.agent("a", [{"say": "Answ"}, renamed], agent="gemini")
    async with stage.open() as conversation:
        with conversation.viewing() as viewer:
            await tell(conversation, "Look. [NEXT: a, b]")
            await tell(conversation, "Again. [NEXT: a]")
        notes = [note async for one in viewer if isinstance(one.event, Said) for note in one.event.notes]
    assert [note.partition(",")[0] for note in notes] == [
        "This release of gemini writes what bullpen does not understand"
    ] * 2
    assert "understand" not in stage.prompt("a")


async def test_an_answer_of_which_nothing_is_understood_is_no_answer(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.put_on_the_path("gemini", monkeypatch)
    stage.people_and_agents("kim", "b")
    stage.agent("a", [{"unknown_event": {"type": "message", "role": "assistant", "words": "Done."}}], agent="gemini")
    async with stage.open() as conversation:
        await tell(conversation, "Look. [NEXT: a, b]")
        (ended,) = conversation.undecided
        assert "This release of gemini writes what bullpen does not understand" in ended.sentence
        assert [text.partition(":")[0] for text in await said(conversation)] == ["kim"]
