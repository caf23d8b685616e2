"""Who answers, in which order, and what each of them sees."""

import asyncio

import pytest
from tests.conversation.stage import GO, HANG, Stage, events_so_far, said, tell, until_at_work, waiting

from bullpen.conversation.events import Dropped, HandOverMissed, Queued, Said, TaskSet
from bullpen.errors import NothingSaid, UnknownSender
from bullpen.view.state import conversation_view


async def test_a_message_without_a_name_goes_to_the_lead_and_comes_back(team: Stage) -> None:
    team.settings["lead"] = "b"
    async with team.open() as conversation:
        assert await tell(conversation, "Hello") == ["kim: Hello", "b: I am b."]
        assert conversation.waits_for == "kim"


async def test_a_relay_shows_each_the_reply_before_and_the_message_that_began_it(stage: Stage) -> None:
    stage.person("kim")
    stage.agent("a", "First I look.")
    stage.agent("b", "Then I build.", window=1)
    stage.agent("c", "Last I test.", window=1)
    async with stage.open() as conversation:
        await tell(conversation, "Make it so. [NEXT: a, b, c]")
    assert "Make it so." in stage.prompt("a")
    assert "Make it so." in stage.prompt("b")
    assert "First I look." in stage.prompt("b")
    assert "Make it so." in stage.prompt("c")
    assert "Then I build." in stage.prompt("c")
    assert stage.prompt("c").rindex("Then I build.") > stage.prompt("c").rindex("Make it so.")


async def test_those_who_answer_in_parallel_do_not_see_each_other_and_a_later_turn_sees_both(stage: Stage) -> None:
    stage.person("kim")
    stage.agent("a", [{"say": "Red"}, GO])
    stage.agent("b", "Blue")
    stage.agent("c", "Green")
    async with stage.open() as conversation:
        await conversation.say("A colour? [NEXT: a & b, c]")
        while conversation.message_count < 2:
            await asyncio.sleep(0.005)
        stage.go()
        await conversation.until_quiet()
        assert (await said(conversation))[1:] == ["b: Blue", "a: Red", "c: Green"]
        await tell(conversation, "And now? [NEXT: b]")
    assert "Blue" not in stage.prompts("a")[0]
    assert "Red" not in stage.prompts("b")[0]
    assert all(colour in stage.prompt("c") for colour in ("Red", "Blue"))
    assert all(colour in stage.prompts("b")[1] for colour in ("Red", "Blue", "Green"))


async def test_a_parallel_turn_that_a_cap_delays_still_does_not_see_the_others_reply(stage: Stage) -> None:
    stage.person("kim")
    stage.limits["turns_per_message"] = 1
    stage.agent("a", "Red")
    stage.agent("b", "Blue")
    async with stage.open() as conversation:
        await tell(conversation, "A colour? [NEXT: a & b]")
        assert waiting(conversation) == ["b"]
        await conversation.continue_turns()
        await conversation.until_quiet()
        assert await said(conversation) == ["kim: A colour? [NEXT: a & b]", "a: Red", "b: Blue"]
    assert "Red" not in stage.prompt("b")


async def test_intents_decide_who_is_next_in_line(stage: Stage) -> None:
    stage.people_and_agents("kim", "b c d e")
    stage.agent("a", HANG, "Done.")
    stage.let_all_edit()
    async with stage.open() as conversation:
        await conversation.say("Begin [NEXT: a]")
        await until_at_work(conversation, "a")
        await conversation.say("Some day [NEXT: b !P3]")
        await conversation.say("In line [NEXT: c]")
        await conversation.say("At once [NEXT: d !P1]")
        await conversation.say("In line, too [NEXT: e !P2]")
        assert waiting(conversation) == ["d", "c", "e", "b"]
        await conversation.cancel()
        await conversation.skip()
        await conversation.continue_turns()
        await conversation.until_quiet()
        replies = (await said(conversation))[5:]
    assert replies == ["d: I am d.", "c: I am c.", "e: I am e.", "b: I am b."]


async def test_nobody_answers_one_message_twice_and_the_strongest_intent_wins(team: Stage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "Hello [NEXT: a !P3, b] [NEXT: a !P1]")
        assert (await said(conversation))[1:] == ["a: I am a.", "b: I am b."]


async def test_drop_clears_what_waits_before_next_is_read(stage: Stage) -> None:
    stage.people_and_agents("kim", "b c")
    stage.agent("a", HANG)
    stage.let_all_edit()
    async with stage.open() as conversation:
        await conversation.say("Begin [NEXT: a, b, c]")
        await until_at_work(conversation, "a")
        await conversation.say("Better [DROP: b] [NEXT: b]")
        assert waiting(conversation) == ["c", "b"]
        await conversation.say("Best [DROP: ALL] [NEXT: b]")
        assert waiting(conversation) == ["b"]
        assert [[turn.member for turn in news.turns] for news in events_so_far(conversation, Dropped)] == [
            ["b"],
            ["c", "b"],
        ]


async def test_the_task_can_be_set_in_both_forms_and_by_an_agent_only_if_it_may(stage: Stage) -> None:
    stage.settings["hand_over_note"] = True
    stage.person("kim")
    stage.agent("a", "[TEAM_TASK: mine] so there")
    stage.agent("b", "[TEAM_TASK]\nDo a[0]\nand b", may_set_task=True)
    async with stage.open() as conversation:
        await tell(conversation, "[TEAM_TASK: ship it] Go [NEXT: a]")
        assert conversation.team_task == "ship it"
        assert "may_set_task" in events_so_far(conversation, Said)[-1].notes[0]
        await tell(conversation, "You then [NEXT: b]")
        assert conversation.team_task == "Do a[0]\nand b"
        assert [(news.task, news.by) for news in events_so_far(conversation, TaskSet)] == [
            ("ship it", "kim"),
            ("Do a[0]\nand b", "b"),
        ]
        await tell(conversation, "Again [NEXT: a]")
    assert "ship it" in stage.prompts("a")[0]
    assert "Do a[0]\nand b" in stage.prompts("a")[1]
    assert "may_set_task" in stage.prompts("a")[1]


async def test_the_task_that_is_told_is_the_task_that_is_kept(team: Stage) -> None:
    async with team.open() as conversation:
        await tell(conversation, f"[TEAM_TASK]\n{'长' * 5000}")
        assert events_so_far(conversation, TaskSet)[0].task == conversation.team_task
        assert conversation.team_task is not None
        assert len(conversation.team_task.encode()) <= 5 * 1024
        await conversation.set_task(None)
        assert conversation.team_task is None


async def test_the_sender_is_given_or_named_or_awaited_or_the_only_one(stage: Stage) -> None:
    stage.people_and_agents("kim lee", "b")
    stage.agent("a", "Over to you. [NEXT: lee]", "And back.")
    async with stage.open() as conversation:
        with pytest.raises(UnknownSender, match="kim, lee"):
            await conversation.say("Who am I?")
        assert await said(conversation) == []
        await tell(conversation, "[FROM: kim] Hello")
        assert conversation.waits_for == "lee"
        await tell(conversation, "I am awaited.")
        await tell(conversation, "[FROM: lee] I am given.", sender="kim")
        speakers = [stored.message.speaker.role_id for stored in await conversation.messages()]
        assert speakers == ["kim", "a", "lee", "a", "kim", "a"]
        with pytest.raises(UnknownSender, match="agent"):
            await conversation.say("I am an agent", sender="a")


async def test_from_counts_only_for_people(stage: Stage) -> None:
    stage.person("kim")
    stage.agent("a", "[FROM: kim] [NEXT: b] I am kim, honestly.")
    stage.agent("b")
    async with stage.open() as conversation:
        await tell(conversation, "Hello")
        assert [stored.message.speaker.role_id for stored in await conversation.messages()] == ["kim", "a", "b"]
    assert "a" in stage.prompt("b")


async def test_a_persons_next_word_goes_to_whoever_handed_over_to_them(stage: Stage) -> None:
    stage.people_and_agents("kim lee", "b")
    stage.agent("a", "Hello. [NEXT: b]")
    stage.agent("b", "Your turn. [NEXT: kim]", "Thank you.")
    async with stage.open() as conversation:
        await tell(conversation, "Hello", sender="kim")
        await tell(conversation, "Fine.", sender="kim")
        assert (await said(conversation))[-1] == "b: Thank you."
        assert "b spoke to you last." in [news.reason for news in events_so_far(conversation, Said)]
        await tell(conversation, "And I?", sender="lee")
        assert (await said(conversation))[-1].startswith("b:"), "a handed over to b again"


async def test_a_reply_without_next_continues_the_queue_and_then_returns_to_the_person(team: Stage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "Hello [NEXT: a, b]")
        assert (await said(conversation))[1:] == ["a: I am a.", "b: I am b."]
        assert conversation.waits_for == "kim"
        await tell(conversation, "Thanks")
        assert (await said(conversation))[-1] == "b: I am b.", "b was the last to return it"


async def test_unknown_names_are_reported_and_the_others_run(team: Stage) -> None:
    team.agent("sarah")
    async with team.open() as conversation:
        await tell(conversation, "Hello [NEXT: zara, b, sara]")
        assert (await said(conversation))[1:] == ["b: I am b."]
        notes = " ".join(events_so_far(conversation, Said)[0].notes)
    assert "zara" in notes
    assert "sarah" in notes


@pytest.mark.parametrize("text", ["Hello [NEXT: nobody]", "@nobody Hello"])
async def test_a_message_that_names_only_strangers_asks_nobody(team: Stage, text: str) -> None:
    async with team.open() as conversation:
        assert await tell(conversation, text) == [f"kim: {text}"]
        assert conversation.waits_for == "kim"
        assert "Nobody was asked." in events_so_far(conversation, Said)[0].notes[-1]


async def test_a_person_who_misspells_a_name_can_ask_whom_they_meant(stage: Stage) -> None:
    stage.people_and_agents("kim", "max sarah")
    async with stage.open() as conversation:
        await tell(conversation, "@sarha, please look")
        [decision] = conversation_view(conversation).decisions
        assert decision.text == "kim wrote @sarha; nobody here is called that. It probably means sarah."
        assert [choice.action for choice in decision.choices] == ["ask", "dismiss"]
        await conversation.ask("sarah")
        await conversation.until_quiet()
        assert (await said(conversation))[1:] == ["sarah: I am sarah."]


async def test_a_relay_goes_on_waiting_for_a_person_who_names_nobody(stage: Stage) -> None:
    stage.people_and_agents("kim", "a b")
    async with stage.open() as conversation:
        await tell(conversation, "Look, then I decide. [NEXT: a, kim, b]")
        await tell(conversation, "@bbbbb, go")
        assert waiting(conversation) == ["kim", "b"]
        assert (await tell(conversation, "Yes."))[-1] == "b: I am b."


async def test_a_mention_is_asked_as_by_a_marker_and_several_in_order(team: Stage) -> None:
    async with team.open() as conversation:
        assert (await tell(conversation, "@b, look"))[1:] == ["b: I am b."]
        assert (await tell(conversation, "@b and then @a"))[3:] == ["b: I am b.", "a: I am a."]


async def test_a_mention_later_in_a_message_answers_after_the_lead(team: Stage) -> None:
    async with team.open() as conversation:
        assert (await tell(conversation, "Add a thing, and @b too"))[1:] == ["a: I am a.", "b: I am b."]
    assert "I am a." in team.prompt("b")


async def test_an_urgent_last_step_does_not_reverse_its_relay(team: Stage) -> None:
    async with team.open() as conversation:
        assert (await tell(conversation, "Look [NEXT: a, b!P1]"))[1:] == ["a: I am a.", "b: I am b."]


async def test_a_mention_in_a_reply_asks_nobody_and_is_offered(stage: Stage) -> None:
    stage.people_and_agents("kim", "b")
    stage.agent("a", "Done. @b please review this.")
    async with stage.open() as conversation:
        assert (await tell(conversation, "@a go"))[1:] == ["a: Done. @b please review this."]
        assert [missed.names for missed in events_so_far(conversation, HandOverMissed)] == [("b",)]


async def test_a_note_is_stored_and_seen_but_asks_nobody(team: Stage) -> None:
    async with team.open() as conversation:
        await conversation.note("The deadline is Friday. [NEXT: b] @b")
        await conversation.until_quiet()
        assert await said(conversation) == ["kim: The deadline is Friday. [NEXT: b] @b"]
        assert events_so_far(conversation, Said)[0].reason == "A note: nobody was asked."
        await tell(conversation, "@a go")
        with pytest.raises(NothingSaid):
            await conversation.note(" ")
    assert "The deadline is Friday." in team.prompt("a")


async def test_a_note_changes_nothing_for_those_at_work_or_in_a_relay(stage: Stage) -> None:
    stage.people_and_agents("kim", "b")
    stage.agent("a", HANG, "Done.")
    async with stage.open() as conversation:
        await conversation.say("Begin [NEXT: a, kim, b]")
        await until_at_work(conversation, "a")
        await conversation.note("By the way")
        assert waiting(conversation) == ["kim", "b"]
        await conversation.cancel()
        paused = conversation.paused
        await conversation.note("Still thinking")
        assert conversation.paused == paused
        assert waiting(conversation) == ["kim", "b"]


async def test_may_address_is_kept_and_the_agent_learns_it(stage: Stage) -> None:
    stage.settings["hand_over_note"] = True
    stage.people_and_agents("kim", "b")
    stage.agent("a", "Yours [NEXT: b]", "Sorry.", may_address=["kim"])
    async with stage.open() as conversation:
        await tell(conversation, "Hello")
        assert await said(conversation) == ["kim: Hello", "a: Yours [NEXT: b]"]
        await tell(conversation, "Well?")
    assert "may not hand over to b" in stage.prompt("a")


async def test_a_relay_through_a_person_waits_for_that_person(stage: Stage) -> None:
    stage.people_and_agents("kim lee", "a b")
    async with stage.open() as conversation:
        await tell(conversation, "Look, decide, build. [NEXT: a, kim, b]", sender="lee")
        assert (await said(conversation))[1:] == ["a: I am a."]
        assert waiting(conversation) == ["kim", "b"]
        assert conversation.waits_for == "kim"
        await tell(conversation, "Yes, do.")
        assert (await said(conversation))[2:] == ["kim: Yes, do.", "b: I am b."]
        assert waiting(conversation) == []
    prompt = stage.prompt("b")
    assert prompt.index("Look, decide, build.") < prompt.index("I am a.") < prompt.index("Yes, do.")
    assert "kim" in prompt.splitlines()[-1], "b answers what kim said"


async def test_a_relay_through_a_person_goes_on_although_it_was_paused_and_opened_again(stage: Stage) -> None:
    stage.people_and_agents("kim", "a b")
    async with stage.open() as conversation:
        await tell(conversation, "Look, decide, build. [NEXT: a, kim, b]")
    async with stage.open(conversation.id) as conversation:
        assert conversation.paused is None, "nothing could begin, so there is nothing to pause"
        await tell(conversation, "Yes, do.")
        assert (await said(conversation))[-1] == "b: I am b."


async def test_a_word_before_ones_place_in_the_relay_does_not_take_it(stage: Stage) -> None:
    stage.people_and_agents("kim", "b c")
    stage.agent("a", [{"say": "Looking"}, GO])
    async with stage.open() as conversation:
        await conversation.say("Look, let me decide, build. [NEXT: a, kim, b]")
        await until_at_work(conversation, "a")
        await conversation.say("By the way [NEXT: c]")
        stage.go()
        await conversation.until_quiet()
        assert waiting(conversation) == ["kim", "b"]
        assert (await tell(conversation, "Yes, do."))[-1] == "b: I am b."


async def test_a_person_whose_relay_has_nobody_left_behind_them_is_not_left_hanging(stage: Stage) -> None:
    stage.people_and_agents("kim", "a b")
    async with stage.open() as conversation:
        await tell(conversation, "Look, decide, build. [NEXT: a, kim, b]")
        assert waiting(conversation) == ["kim", "b"]
        await conversation.drop(member="b")
        assert (await tell(conversation, "Anybody?"))[-2:] == ["kim: Anybody?", "a: I am a."]


async def test_a_missed_hand_over_is_told_to_people_and_to_the_agent(stage: Stage) -> None:
    stage.settings["hand_over_note"] = True
    stage.people_and_agents("kim", "b")
    stage.agent("a", "All done. Over to b!", "Better. [NEXT: b]", "Good.")
    async with stage.open() as conversation:
        await tell(conversation, "Hello")
        missed = events_so_far(conversation, HandOverMissed)[0]
        assert (missed.member, missed.names) == ("a", ("b",))
        assert (await said(conversation))[1:] == ["a: All done. Over to b!"]
        await conversation.ask("b")
        await conversation.until_quiet()
        assert (await said(conversation))[-1] == "b: I am b."
        await tell(conversation, "Once more [NEXT: a]")
        await tell(conversation, "And again [NEXT: a]")
    assert "[NEXT: name]" in stage.prompts("a")[1]
    assert "[NEXT: name]" not in stage.prompts("a")[2], "it was told once"


async def test_a_missed_hand_over_is_asked_about_although_others_speak(stage: Stage) -> None:
    stage.people_and_agents("kim", "b c d")
    stage.agent("a", "All done. Over to b!", "That is all.")
    async with stage.open() as conversation:
        await tell(conversation, "Hello [NEXT: a, c & d]")
        assert conversation.progress.missed is not None
        assert conversation.progress.missed.members == ("b",)
        await conversation.ask("d")
        await conversation.until_quiet()
        assert conversation.progress.missed is None, "a person has decided"


@pytest.mark.parametrize("later", ["a", "b"])
async def test_a_missed_hand_over_is_over_when_who_was_meant_is_asked_or_the_sender_says_more(
    stage: Stage, later: str
) -> None:
    stage.people_and_agents("kim", "b")
    stage.agent("a", "All done. Over to b!", "That is all.")
    stage.agent("c", f"Let me ask. [NEXT: {later}]")
    async with stage.open() as conversation:
        await tell(conversation, "Hello [NEXT: a, c]")
        assert (await said(conversation))[-1].startswith(later)
        assert conversation.progress.missed is None


async def test_markers_in_code_do_not_route(stage: Stage) -> None:
    stage.people_and_agents("kim", "b")
    stage.agent("a", "Write `[NEXT: b]` to hand over.")
    async with stage.open() as conversation:
        assert await tell(conversation, "> [NEXT: b]\nHow?") == [
            "kim: > [NEXT: b]\nHow?",
            "a: Write `[NEXT: b]` to hand over.",
        ]


async def test_a_message_that_is_only_a_marker_is_a_message(team: Stage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "Hello [NEXT: a]")
        assert (await tell(conversation, "[NEXT: b]"))[-1] == "b: I am b."


@pytest.mark.parametrize("text", ["", "   \n", "\u3000\u2028"], ids=["nothing", "white space", "wide space"])
async def test_nothing_is_no_message(team: Stage, text: str) -> None:
    async with team.open() as conversation:
        with pytest.raises(NothingSaid):
            await conversation.say(text)
        assert await said(conversation) == []


@pytest.mark.parametrize(
    "text",
    ["x" * 1024 * 1024, "你好，世界。" * 50, "👩‍👩‍👧‍👦 done", "half \ud83d an emoji", "nul \0 byte", "\r\nlines\r"],
)
async def test_whatever_is_said_arrives(team: Stage, text: str) -> None:
    async with team.open() as conversation:
        replies = await tell(conversation, f"Look: {text} [NEXT: a, b]")
        assert replies[1:] == ["a: I am a.", "b: I am b."]
        assert await conversation.read(lambda store, _: store.fsck()) == []


@pytest.mark.parametrize("reply", ["\ud800?", "\x1b[31mred\x07", "你好 👋", "y" * 200_000, "two\u2028lines"])
async def test_whatever_an_agent_says_arrives(stage: Stage, reply: str) -> None:
    stage.people_and_agents("kim", "b")
    stage.agent("a", [{"say": reply}])
    async with stage.open() as conversation:
        assert len(await tell(conversation, "Hello [NEXT: a, b]")) == 3


async def test_queued_turns_are_told_with_their_message(team: Stage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "Hello [NEXT: a & b]")
        (queued,) = events_so_far(conversation, Queued)
    assert [(turn.id, turn.member, turn.step) for turn in queued.turns] == [("1", "a", 0), ("2", "b", 0)]
