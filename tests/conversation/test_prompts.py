"""What an agent is given, what is recorded about it, and what keeps it from being given anything."""

import json
import sys
from pathlib import Path

import pytest
from tests.conversation.stage import GO, Stage, events_so_far, said, tell

from bullpen.conversation.events import Said, TaskSet, Trouble, TurnEvent
from bullpen.errors import NobodyToAsk
from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.store.base import Store, Turn, TurnRecord
from bullpen.team.file import load_team
from bullpen.team.trust import Trust, settings_marks
from bullpen.turn_events import Notice


async def record_of(stage: Stage, *says: str) -> tuple[TurnRecord, Turn]:
    """Return the record of the last turn after these messages."""
    async with stage.open() as conversation:
        for text in says:
            await tell(conversation, text)
        turn = (await conversation.read(lambda store, id_: store.turns(id_)))[-1]
        record = await conversation.read(lambda store, id_: store.record(id_, turn.id))
        assert record is not None
        return record, turn


async def test_prompt_and_system_text_are_recorded_exactly(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.put_claude_on_the_path(monkeypatch)
    stage.settings["hand_over_note"] = True
    stage.person("kim")
    stage.agent("a", [{"say": "Yes"}, {"usage": {"input": 7, "output": 3}, "cost": 0.5}], agent="claude")
    stage.members["a"]["system_instruction"] = ["Be brief.", "Be kind."]
    record, turn = await record_of(stage, "[TEAM_TASK: ship] Ready? 准备好了吗")
    assert record.prompt in stage.prompt("a").replace("\\n", "\n")
    assert record.system is not None
    assert record.system.startswith("Be brief.\n\nBe kind.")
    assert "kim" in record.system
    assert "ship" in record.prompt
    assert record.report.message_bytes_cut == 0
    assert "--turns=" in " ".join(record.command)
    assert b'"type"' in record.stream
    assert turn.usage is not None
    assert (turn.usage.cost_usd, turn.state, turn.failure) == (0.5, "done", None)
    assert turn.started_at is not None
    assert turn.ended_at is not None
    assert turn.queued_at <= turn.started_at <= turn.ended_at


async def test_the_report_says_what_was_left_out(team: Stage) -> None:
    team.members["a"]["max_bytes"] = 400
    record, _ = await record_of(team, "x" * 380, "Well? [NEXT: a]")
    assert record.report.dropped_messages == 1
    assert len(record.prompt.encode()) <= 400


async def test_what_a_person_asked_for_stays_in_sight_through_a_long_chain(stage: Stage) -> None:
    stage.person("kim")
    stage.limits["back_and_forth"] = 100
    stage.agent("a", *[f"Step {number}. [NEXT: b]" for number in range(8)], window=1)
    stage.agent("b", "Next. [NEXT: a]", window=1)
    async with stage.open() as conversation:
        await tell(conversation, "Before all this. [NEXT: kim]")
        await tell(conversation, "Build a timer. [NEXT: a]")
        await conversation.until_quiet()
    for member in ("a", "b"):
        prompt = stage.prompts(member)[-1]
        assert prompt.count("Build a timer.") == 1, "although its window is one message"
        assert "Before all this." not in prompt


async def test_a_request_that_began_a_relay_and_the_last_one_in_it_are_both_in_sight(stage: Stage) -> None:
    stage.people_and_agents("kim", "b c")
    stage.agent("a", "Done.", window=0)
    async with stage.open() as conversation:
        await tell(conversation, "Paint it. [NEXT: c, kim, b]")
        await tell(conversation, "In red. [NEXT: a]")
    assert all(words in stage.prompt("a") for words in ("Paint it.", "In red."))


async def test_by_default_an_agent_is_given_what_has_64_kilobytes_and_told_how_many_it_does_not_see(
    team: Stage,
) -> None:
    async with team.open() as conversation:
        for number in range(20):
            await conversation.note(f"Note {number}: {'x' * 10_000}")
        await tell(conversation, "Well? [NEXT: a]")
    lines = team.prompt("a").splitlines()
    assert lines[0] == "(14 earlier messages are not shown.)"
    assert [line[:13] for line in lines[1:-2]] == [f"kim: Note {number}:"[:13] for number in range(14, 20)]


async def test_at_least_five_messages_are_given_and_nothing_is_said_if_all_are_seen(team: Stage) -> None:
    async with team.open() as conversation:
        for number in range(5):
            await conversation.note(f"Note {number}: {'x' * 20_000}")
        await tell(conversation, "Well? [NEXT: a]")
    assert [line[:11] for line in team.prompt("a").splitlines()[:-2]] == [f"kim: Note {number}" for number in range(5)]


async def test_the_request_is_in_sight_also_if_little_fits(stage: Stage) -> None:
    stage.person("kim")
    stage.agent("a", "Step. [NEXT: b]", f"Long: {'y' * 2_000} [NEXT: b]", "Done.")
    stage.agent("b", f"Long: {'z' * 2_000} [NEXT: a]", max_bytes=6_000)
    async with stage.open() as conversation:
        for number in range(9):
            await conversation.note(f"Note {number}: {'x' * 700}")
        await tell(conversation, "Build a timer. [NEXT: a]")
    first, second = stage.prompts("b")
    assert "Build a timer." in first
    assert "Build a timer." in second
    assert len(second.encode()) <= 6_000
    assert "earlier messages are not shown.)" in second


async def test_a_request_to_somebody_else_is_not_shown_to_one_who_sees_only_what_concerns_it(stage: Stage) -> None:
    stage.person("kim")
    stage.agent("a", "Please look. [NEXT: b]")
    stage.agent("b", "Done.", visibility="addressed")
    async with stage.open() as conversation:
        await tell(conversation, "A secret for a. [NEXT: a]")
    assert "Please look." in stage.prompt("b")
    assert "A secret for a." not in stage.prompt("b")


async def test_a_request_that_cannot_fit_does_not_cost_the_others_their_place(stage: Stage) -> None:
    stage.person("kim")
    stage.agent("a", "First step. [NEXT: b]", "Second step. [NEXT: b]", "Done.")
    stage.agent("b", "Checked. [NEXT: a]", max_bytes=2_000)
    async with stage.open() as conversation:
        await tell(conversation, f"{'x' * 3_000} [NEXT: a]")
    assert "First step." in stage.prompts("b")[1]


async def test_a_message_that_answers_one_that_does_not_exist_can_be_answered(team: Stage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "Hello [NEXT: a]")
        message = ConversationMessage(
            id="imported",
            content="From elsewhere",
            speaker=Speaker(role_id="b", role_name="b", type="ai"),
            timestamp=1,
            routing=Routing(parent_message_id="gone"),
        )
        await conversation.read(lambda store, id_: store.append(id_, message, owner=store.conversation(id_).owner))
        id_ = conversation.id
    async with team.open(id_) as conversation:
        await conversation.ask("c")
        await conversation.until_quiet()
        assert (await said(conversation))[-1] == "c: I am c."


async def test_a_long_conversation_is_given_and_reported_whole(team: Stage) -> None:
    async with team.open() as conversation:
        for number in range(300):
            await conversation.note(f"Note {number}")
        await tell(conversation, "Well? [NEXT: a]")
        record = await conversation.read(lambda store, id_: store.record(id_, "1"))
        assert record is not None
        assert list(record.report.context_ids) == [f"msg-{number}" for number in range(1, 301)]
    assert all(f"Note {number}" in team.prompt("a") for number in range(300))


async def test_a_window_of_zero_shows_only_the_message(team: Stage) -> None:
    team.members["a"]["window"] = 0
    async with team.open() as conversation:
        await tell(conversation, "Earlier [NEXT: b]")
        await tell(conversation, "Now [NEXT: a]")
    assert "Now" in team.prompt("a")
    assert "Earlier" not in team.prompt("a")


async def test_a_window_holds_the_newest_messages(team: Stage) -> None:
    team.members["a"]["window"] = 2
    async with team.open() as conversation:
        for word in ("one", "two", "three"):
            await tell(conversation, f"{word} [NEXT: b]")
        await tell(conversation, "Now [NEXT: a]")
    prompt = team.prompt("a")
    assert ("two" not in prompt, "three" in prompt, prompt.count("I am b.")) == (True, True, 1)


async def test_a_member_may_see_only_what_concerns_it(team: Stage) -> None:
    team.person("lee")
    team.members["a"]["visibility"] = "addressed"
    async with team.open() as conversation:
        await tell(conversation, "Between us [NEXT: b]", sender="kim")
        await tell(conversation, "For you [NEXT: a]", sender="kim")
        await tell(conversation, "Secret [NEXT: lee]", sender="kim")
        await tell(conversation, "Again [NEXT: a]", sender="kim")
    prompt = team.prompt("a")
    assert "For you" in prompt
    assert "I am a." in prompt
    assert "Between us" not in prompt
    assert "Secret" not in prompt


@pytest.mark.parametrize(
    ("tune", "words"),
    [
        ({"max_bytes": 50, "system_instruction": "Be brief." * 9}, "does not fit into 50 bytes"),
        ({"cwd": "nowhere"}, "nowhere does not exist"),
        ({"command": ["no-such-program-anywhere"]}, "no-such-program-anywhere was not found"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
async def test_what_cannot_be_prepared_fails_with_a_sentence_and_can_be_tried_again(
    team: Stage, tune: dict[str, object], words: str
) -> None:
    team.members["a"] |= tune
    async with team.open() as conversation:
        await tell(conversation, "Go [NEXT: a & b, c]")
        assert (await said(conversation))[1:] == ["b: I am b."]
        turn = await conversation.read(lambda store, id_: store.turn(id_, "1"))
        assert turn.state == "failed"
        assert turn.failure is not None
        assert words in turn.failure.message
        await conversation.retry()
        await conversation.until_quiet()
        assert [turn.id for turn in conversation.undecided] == ["4"]
        await conversation.skip()
        await conversation.until_quiet()
        assert (await said(conversation))[-1] == "c: I am c."


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("NOTES.md", "'NOTES.md' does not exist."),
        ("latin.md", "'latin.md' is not valid UTF-8 (line 2)."),
        ("huge.md", "'huge.md' is longer than 16 MiB."),
        ("../outside.md", "'../outside.md' is outside"),
        ("folder", "'folder' is not a regular file."),
    ],
)
async def test_an_instruction_file_that_cannot_be_read_does_not_stop_a_turn(
    team: Stage, name: str, problem: str
) -> None:
    (team.folder / "latin.md").write_bytes(b"one\nqu\xe9\n")
    (team.folder / "huge.md").write_bytes(b"x" * (16 * 1024 * 1024 + 1))
    (team.folder / "folder").mkdir()
    (team.folder.parent / "outside.md").write_text("no")
    (team.folder / "TEAM.md").write_text("We are polite.")
    team.settings["instruction_file"] = "TEAM.md"
    team.members["a"] |= {"instruction_file": name, "system_instruction": "You are Max."}

    record, turn = await record_of(team, "Go [NEXT: a]")

    assert turn.state == "done"
    assert record.prompt.startswith("You are Max.\n\nWe are polite.\n\n")
    (told,) = record.report.instruction_problems
    assert problem in told
    assert record.report.cuts == (f"SYSTEM without an instruction file: {told.removesuffix('.')}",)


async def test_a_long_instruction_file_is_shortened_in_the_middle_also_when_it_was_found_by_itself(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.put_claude_on_the_path(monkeypatch)
    stage.person("kim")
    stage.agent("a", [{"say": "Yes"}], agent="claude")
    stage.members["a"]["system_instruction"] = "You are Max."
    (stage.folder / "CLAUDE.md").write_text("HEAD" + "x" * 900_000 + "TAIL")

    record, turn = await record_of(stage, "Go [NEXT: a]")

    assert turn.state == "done"
    assert record.system is not None
    assert record.system.startswith("You are Max.\n\nHEADxxx")
    assert record.system.endswith("xxxTAIL")
    assert "bytes of the instruction file left out" in record.system
    assert record.report.instruction_bytes_cut > 500_000


async def test_a_team_task_that_is_too_long_is_said(team: Stage) -> None:
    task = "t" * 10_009

    record, _ = await record_of(team, f"[TEAM_TASK: {task}] Go [NEXT: a]")

    assert record.report.team_task_bytes_cut == 10_009 - 5_120
    assert "TEAM_TASK cut by 4,889 bytes" in record.report.cuts
    assert record.prompt.count("t" * 5_120) == 1
    assert "t" * 5_121 not in record.prompt


async def test_people_are_told_of_a_task_that_is_too_long_or_takes_all_of_a_message(team: Stage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "[TEAM_TASK] Build login\n\nHi a, please start. [NEXT: a]")
        await tell(conversation, f"[TEAM_TASK: {'t' * 6_000}] Go [NEXT: a]")
        await conversation.set_task("u" * 7_000)
        notes = [note for told in events_so_far(conversation, Said) for note in told.notes]
        troubles = [told.text for told in events_so_far(conversation, Trouble)]
        tasks = [told.task for told in events_so_far(conversation, TaskSet)]
    assert notes == [
        "The whole message became the team task. Agents also get it as the message.",
        "The team task has 6,000 bytes. Agents get the first 5,120 of them.",
    ]
    assert troubles == ["The team task has 7,000 bytes. Agents get the first 5,120 of them."]
    assert tasks == ["Build login\n\nHi a, please start.", "t" * 5_120, "u" * 5_120]
    assert "kim: Build login\n\nHi a, please start." in team.prompts("a")[0]


async def test_what_was_said_after_the_message_that_is_answered_is_not_offered(team: Stage) -> None:
    team.agent("a", [GO, {"say": "I am a."}])
    team.let_all_edit()
    async with team.open() as conversation:
        await conversation.say("First [NEXT: a]")
        await conversation.say("Second [NEXT: b]")
        await conversation.say("Third [NEXT: c]")
        team.go()
        await conversation.until_quiet()
        records = await conversation.read(lambda store, id_: [store.record(id_, turn) for turn in ("2", "3")])
    prompts = [record.prompt for record in records if record]
    assert "Third" not in prompts[0]
    assert "I am a" not in prompts[0]
    assert prompts[1].index("First") < prompts[1].index("Second") < prompts[1].index("Third")
    assert [record.report.later_messages for record in records if record] == [2, 2]


async def test_an_imported_message_to_a_display_name_is_seen(team: Stage) -> None:
    team.members["a"] |= {"visibility": "addressed", "display_name": "Sarah"}
    async with team.open() as conversation:
        await tell(conversation, "Go [NEXT: b]")

        def add(store: Store, id_: str) -> None:
            for number, to in enumerate(("SARAH", "somebody else"), start=7):
                routing = Routing(resolved_addressees=(to,))
                speaker = Speaker(role_id="m-1", role_name="Other", type="ai")
                store.append(
                    id_,
                    ConversationMessage(id=f"old-{number}", content=f"for {to}", speaker=speaker, routing=routing),
                    owner=store.conversation(id_).owner,
                )

        await conversation.read(add)
    async with team.open(conversation.id) as again:
        await tell(again, "Well? [NEXT: a]")
    prompt = team.prompt("a")
    assert "for SARAH" in prompt
    assert "for somebody else" not in prompt


async def test_ids_are_numbers_and_a_clients_own_id_is_kept(team: Stage) -> None:
    async with team.open() as conversation:
        await conversation.say("One [NEXT: a]")
        await conversation.until_quiet()
        await conversation.say("Two [NEXT: kim]", message_id="my-own")
        await conversation.say("Three [NEXT: kim]", message_id="msg-5")
        await conversation.say("Four [NEXT: kim]")
    async with team.open(conversation.id) as again:
        await again.say("Five [NEXT: kim]")
        ids = [stored.message.id for stored in await again.messages()]
    assert ids == ["msg-1", "msg-2", "my-own", "msg-5", "msg-6", "msg-7"]


async def test_an_id_that_somebody_took_beforehand_is_not_used_again(team: Stage) -> None:
    async with team.open() as conversation:
        await conversation.say("One [NEXT: kim]", message_id="msg-3")
    async with team.open(conversation.id) as again:
        for text in ("Two", "Three", "Three"):
            await again.say(f"{text} [NEXT: kim]")
        stored = [(one.message.id, one.message.content) for one in await again.messages()]
    assert [id_ for id_, _ in stored] == ["msg-3", "msg-4", "msg-5", "msg-6"]


async def test_the_texts_examples_can_be_had_byte_for_byte(team: Stage) -> None:
    team.settings |= {"hand_over_note": False, "message_header": False}
    team.members["a"]["system_instruction"] = "You are a math tutor"
    async with team.open() as conversation:
        await tell(conversation, "What is 2+2? [NEXT: a]")
    assert team.prompt("a") == "You are a math tutor\n\nWhat is 2+2?"


async def test_white_space_can_be_collapsed(team: Stage) -> None:
    team.settings["whitespace"] = "collapse"
    async with team.open() as conversation:
        await tell(conversation, "a   b\n\n   c [NEXT: a]")
    assert team.prompt("a").endswith("kim: a b\nc")


async def test_an_unknown_agent_type_with_a_command_runs_with_one_warning(team: Stage) -> None:
    team.members["a"]["agent"] = "custom-agent"
    async with team.open() as conversation:
        await tell(conversation, "One [NEXT: a]")
        await tell(conversation, "Two [NEXT: a]")
        events = [told.event for told in events_so_far(conversation, TurnEvent)]
    assert [event.text for event in events if isinstance(event, Notice)] == [
        '[ContextManager] Unknown agentType "custom-agent" (normalized: "custom-agent"), using PlainTextAssembler'
    ]


async def test_numbers_go_on_after_the_highest_that_was_imported(team: Stage) -> None:
    async with team.open() as conversation:
        await conversation.say("One [NEXT: kim]", message_id="first")

        def add(store: Store, id_: str) -> None:
            speaker = Speaker(role_id="m-1", role_name="Other", type="ai")
            for number in (50, 51):
                message = ConversationMessage(id=f"msg-{number}", content="old", speaker=speaker)
                store.append(id_, message, owner=store.conversation(id_).owner)

        await conversation.read(add)
    async with team.open(conversation.id) as again:
        # What is remembered knows nothing of what others have put into the store: it is counted when it is opened.
        await again.say("Two [NEXT: kim]")
        ids = [stored.message.id for stored in await again.messages()]
    assert ids == ["first", "msg-50", "msg-51", "msg-52"]


async def test_nothing_is_added_to_the_system_text_without_the_note(team: Stage) -> None:
    team.settings |= {"hand_over_note": False, "message_header": False}
    team.agent("a", "Over to [NEXT: nobdy]", "Sorry.", system_instruction="You are Max")
    async with team.open() as conversation:
        await tell(conversation, "One [NEXT: a]")
        await tell(conversation, "Two [NEXT: a]")
    assert team.prompt("a").startswith("You are Max\n\nkim: One\n")


async def test_a_task_that_does_not_count_is_part_of_what_was_said(team: Stage) -> None:
    team.agent("a", "Here is my plan.\n[TEAM_TASK] Everybody reads this.\n[NEXT: b]")
    async with team.open() as conversation:
        await tell(conversation, "Go [NEXT: a]")
        assert conversation.team_task is None
    assert team.prompt("b").endswith("a: Here is my plan.\nEverybody reads this.")


async def test_people_are_told_of_a_message_of_nothing_but_markers(team: Stage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "[NEXT: a]")
        (note,) = events_so_far(conversation, Said)[0].notes
    assert note == "This message contains only markers, so agents get only the conversation before it."


async def test_two_members_of_an_unknown_type_are_warned_about_once(team: Stage) -> None:
    for name in ("a", "b"):
        team.members[name]["agent"] = "custom-agent"
    async with team.open() as conversation:
        await tell(conversation, "One [NEXT: a, b]")
        events = [told.event for told in events_so_far(conversation, TurnEvent)]
    assert len([event for event in events if isinstance(event, Notice)]) == 1


async def test_instruction_files_are_read_anew_for_every_turn(team: Stage) -> None:
    team.settings["instruction_file"] = "TEAM.md"
    team.members["a"]["instruction_file"] = "A.md"
    (team.folder / "TEAM.md").write_text("We are polite.")
    (team.folder / "A.md").write_text("You are first.")
    async with team.open() as conversation:
        await tell(conversation, "Go [NEXT: a]")
        (team.folder / "A.md").write_text("You are last.")
        await tell(conversation, "Go [NEXT: a]")
    first, last = team.prompts("a")
    assert first.index("We are polite.") < first.index("You are first.")
    assert "You are last." in last
    assert "You are first." not in last


async def test_only_the_named_variables_are_passed_on(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "let me in")
    monkeypatch.setenv("MY_SECRET", "stay out")
    stage.person("kim")
    program = "import os; print(os.environ.get('MY_TOKEN'), os.environ.get('MY_SECRET'), os.getcwd())"
    folder = stage.folder / "place"
    folder.mkdir()
    stage.agent("a", command=[sys.executable, "-c", program], env=["MY_TOKEN", "NOT_SET"], cwd="place")
    async with stage.open() as conversation:
        assert (await tell(conversation, "Hello"))[-1] == f"a: let me in None {folder.resolve()}"


async def test_the_preview_is_what_the_agent_would_get(team: Stage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "Hello [NEXT: b]")
        preview = await conversation.preview("A")
        with pytest.raises(NobodyToAsk):
            await conversation.preview("kim")
        await conversation.ask("a")
        await conversation.until_quiet()
    assert team.prompt("a") == preview.prompt


async def test_the_hand_over_note_can_be_on_off_or_ones_own(stage: Stage, tmp_path: Path) -> None:
    stage.people_and_agents("kim", "a b")
    notes = []
    for setting in (True, False, "Shout when done."):
        stage.settings["hand_over_note"] = setting
        async with stage.open() as conversation:
            await tell(conversation, "Hello")
        notes.append(stage.prompt("a"))
    assert ["[NEXT:" in note for note in notes] == [True, False, False]
    assert "Shout when done." in notes[2]


async def test_what_an_older_claude_is_given_is_recorded_as_it_is_sent(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.put_claude_on_the_path(monkeypatch)
    program = stage.folder / "bin" / "claude"
    refusal = "error: unknown option '--append-system-prompt-file'"
    start = f"""#!/bin/sh\ncase "$*" in *--append-system-prompt-file*) echo "{refusal}" >&2; exit 1; esac\n"""
    program.write_text(program.read_text().replace("#!/bin/sh\n", start))
    stage.settings["prompts"] = "specification"
    stage.person("kim")
    stage.agent("a", agent="claude", system_instruction="You are Max.")

    def read(store: Store, id_: str) -> list[TurnRecord]:
        return [record for turn in store.turns(id_) if (record := store.record(id_, turn.id)) is not None]

    async with stage.open() as conversation:
        for text in ("One", "Two"):
            await tell(conversation, f"{text} [NEXT: a]")
        first, second = await conversation.read(read)
        notices = [told.event for told in events_so_far(conversation, TurnEvent) if isinstance(told.event, Notice)]
    assert (first.prompt, first.system) == ("[MESSAGE]\nOne", "You are Max."), "nobody knew it before"
    start = "[SYSTEM]\nYou are Max.\n\n[CONTEXT]\n"
    assert (second.prompt, second.system) == (f"{start}- kim -> a: One\n- a -> all: I am a.\n\n[MESSAGE]\nTwo", None)
    assert len(notices) == 1
    sent = [json.loads(prompt)["message"]["content"] for prompt in stage.prompts("a")]
    assert sent == ["[SYSTEM]\nYou are Max.\n\n[MESSAGE]\nOne", second.prompt]


async def test_the_rules_of_a_project_reach_a_member_and_are_named(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.put_claude_on_the_path(monkeypatch)
    stage.person("kim")
    stage.agent("a", [{"say": "Yes"}], agent="claude", cwd="part")
    (stage.folder / "part").mkdir()
    (stage.folder / "AGENTS.md").write_text("Be brief.\n@style.md")
    (stage.folder / "style.md").write_text("Two spaces.")
    (stage.folder / "part" / "CLAUDE.md").write_text("Be kind.")

    record, _ = await record_of(stage, "Go [NEXT: a]")

    assert record.system == "Be brief.\nTwo spaces.\n\nBe kind."
    assert record.report.instruction_files == ("AGENTS.md", "style.md", "part/CLAUDE.md")


async def test_what_a_program_reads_by_itself_is_named_and_not_given_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.put_claude_on_the_path(monkeypatch)
    stage.person("kim")
    stage.agent("a", [{"say": "Yes"}], agent="claude", cwd="part", permissions="full")
    (stage.folder / "part").mkdir()
    (stage.folder / "AGENTS.md").write_text("Be brief.")
    (stage.folder / "part" / "CLAUDE.md").write_text("Be kind.")

    record, _ = await record_of(stage, "Go [NEXT: a]")

    assert record.system == "Be brief."
    assert (record.report.instruction_files, record.report.read_by_itself) == (("AGENTS.md",), ("part/CLAUDE.md",))
    # Nobody has agreed to these settings, so it is started without the folder's, and without its rules.
    settings = stage.folder / "part" / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text("{}")

    record, _ = await record_of(stage, "Go [NEXT: a]")

    assert record.system == "Be brief.\n\nBe kind."
    loaded = load_team(stage.write())
    Trust().remember(loaded.path, loaded.text, settings_marks(loaded.team, loaded.root))

    record, _ = await record_of(stage, "Go [NEXT: a]")

    assert record.system == "Be brief."
