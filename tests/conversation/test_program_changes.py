"""What a turn wrote that makes programs run is put before a person before another agent begins."""

from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.conversation.repository_stage import Repository, kinds, records
from tests.conversation.stage import Stage, events_so_far, said, tell, waiting

from bullpen.cli import main
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Decided, ProgramsChanged
from bullpen.conversation.file_history import FileHistory
from bullpen.conversation.program_changes import ProgramQuestions, with_programs
from bullpen.errors import FilesDiffer, NothingToDecide
from bullpen.file_changes import FolderChanges
from bullpen.routing.progress import ProgramChange
from bullpen.store.sqlite import SqliteStore
from bullpen.view.changes import record_words
from bullpen.view.commands import read_command, run_command
from bullpen.view.listing import conversation_summary
from bullpen.view.state import conversation_view, stored_view
from bullpen.view.status_lines import queue_lines, status_line

ASKED = "builder changed '.envrc' in turn 1. Such files make programs run, so no agent begins until you decide."


class Project(Repository):
    """A repository in which a builder runs commands, and a reader follows it."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.write("a.py", "one\n")
        self.write(".gitignore", "ignored/\n.env\n")
        self.write(".envrc", "export A=1\n")
        self.commit()
        stage.people_and_agents("kim", "reader")
        stage.members["reader"]["cwd"] = "repo"

    def builder(self, commands: str, **keys: str) -> None:
        self.agent("builder", commands, **{"workspace": "shared", **keys})


@pytest.fixture
def project(stage: Stage) -> Project:
    return Project(stage)


async def typed(conversation: Conversation, text: str) -> None:
    command = read_command(text, conversation.team)
    assert command is not None
    await run_command(command, conversation, "kim")
    await conversation.until_quiet()


async def test_no_agent_begins_until_a_person_has_kept_it(project: Project) -> None:
    project.builder("echo two >> a.py; echo 'rm -rf .' > .envrc")
    async with project.stage.open() as conversation:
        await tell(conversation, "[NEXT: builder, reader] Go.")
        (asked,) = events_so_far(conversation, ProgramsChanged)
        assert asked == ProgramsChanged(
            turn_id="1", member="builder", files=(".envrc",), can_be_undone=True, text=ASKED
        )
        assert (waiting(conversation), conversation.progress.programs) == (
            ["reader"],
            {"1": ProgramChange(member="builder", files=(".envrc",))},
        )
        view = conversation_view(conversation)
        assert view.status == "paused"
        (decision,) = view.decisions
        assert (decision.kind, decision.turn, decision.member) == ("programs", "1", "builder")
        assert decision.text == f"{ASKED} /diff 1 shows what changed."
        assert [(choice.label, choice.typed, choice.is_risky) for choice in decision.choices] == [
            ("Keep", "/allow 1", True),
            ("Put back", "/dismiss 1", False),
        ]
        assert status_line(view) == "waiting: reader · ◆ waits for you: builder (turn 1)"
        assert queue_lines(view) == [
            "turn 2  reader: waits for your decision about files that make programs run",
            f"{ASKED} /diff 1 shows what changed. /allow 1 or /dismiss 1?",
        ]
        await conversation.continue_turns()
        await tell(conversation, "[NEXT: reader] And you?")
        assert waiting(conversation) == ["reader", "reader"]

        await typed(conversation, "/allow 1")
        assert [one for one in await said(conversation) if one.startswith("reader")] == ["reader: I am reader."] * 2
        assert events_so_far(conversation, Decided) == [Decided(turn_id="1", choice="its files are kept", by="kim")]
        assert (project.read(".envrc"), conversation.progress.programs) == ("rm -rf .\n", {})
        assert conversation_view(conversation).decisions == ()
        with pytest.raises(NothingToDecide):
            await conversation.keep_programs("1")


async def test_only_such_files_are_put_back(project: Project) -> None:
    project.builder("echo two >> a.py; echo x > .envrc; mkdir .qwen; echo '{}' > .qwen/settings.json; mv a.py b.py")
    async with project.stage.open() as conversation:
        await tell(conversation, "[NEXT: builder, reader] Go.")
        await typed(conversation, "/dismiss")
        assert (project.read(".envrc"), project.read(".qwen/settings.json")) == ("export A=1\n", None)
        assert (project.read("a.py"), project.read("b.py")) == (None, "one\ntwo\n")
        assert (await said(conversation))[-1] == "reader: I am reader."
        _, undo = await records(conversation)
        assert (undo.kind, undo.turn_id, undo.person, undo.state) == ("undo", "1", "kim", "done")
        assert kinds(undo) == {".envrc": "changed", ".qwen/settings.json": "deleted"}
        assert "-x\n+export A=1" in undo.changes.patch
        assert (
            record_words(undo) == "kim took back what turn 1 changed in files that make programs run: 2 files (+1 −2)."
        )
        # The rest of the turn can still be taken back.
        await conversation.undo("1")
        assert (project.read("a.py"), project.read("b.py"), project.read(".envrc")) == ("one\n", None, "export A=1\n")


@pytest.mark.parametrize("choice", ["/dismiss", "/undo 1", "/rewind 1"])
async def test_ignored_files_of_a_person_stay_when_rules_change(choice: str, project: Project) -> None:
    project.write(".env", "TOKEN=1\n")
    (project.folder / "ignored").mkdir()
    project.write("ignored/key", "mine\n")
    project.builder("echo x > .envrc; : > .gitignore; git add -f ignored/key; echo new > b.py")
    async with project.stage.open() as conversation:
        await tell(conversation, "[NEXT: builder] Go.")
        (record,) = await records(conversation)
        assert kinds(record) == {".envrc": "changed", ".gitignore": "changed", "b.py": "added"}
        assert ".env, ignored/key were ignored" in record.changes.note
        project.write("later", "x\n")
        await typed(conversation, choice)
        assert (project.read(".env"), project.read("ignored/key")) == ("TOKEN=1\n", "mine\n")


async def test_what_somebody_changed_since_is_not_overwritten(project: Project) -> None:
    project.builder("echo x > .envrc")
    async with project.stage.open() as conversation:
        await tell(conversation, "[NEXT: builder] Go.")
        project.write(".envrc", "mine\n")
        with pytest.raises(FilesDiffer):
            await conversation.undo_programs("1")
        assert (project.read(".envrc"), list(conversation.progress.programs)) == ("mine\n", ["1"])


@pytest.mark.parametrize(
    ("commands", "files", "beside"),
    [
        ("ln -s .envrc link; echo x >> link", (".envrc",), ()),
        ("ln .envrc other; echo x >> other; rm other", (".envrc",), ()),
        ("mkdir -p sub/.claude; echo '{}' > sub/.claude/settings.json", ("sub/.claude/settings.json",), ()),
        ("rm .envrc", (".envrc",), ()),
        ("git mv .envrc plain", (".envrc",), ()),
        ("ln -s ../repo/a.py .mcp.json", (".mcp.json",), ()),
        ("echo x > TEAM.toml", ("TEAM.toml",), ()),
        ('echo \'{"scripts": {"postinstall": "x"}}\' > package.json', ("package.json",), ()),
        ("echo '{' > package.json", ("package.json",), ()),
        ("echo SECRET=1 > .env", (), (".env",)),
        ("echo exit > .git/hooks/pre-commit", (), (".git/hooks/pre-commit",)),
        ("git config core.fsmonitor ./x", (), (".git/config",)),
        ("ln -s ../../a.py .git/hooks/pre-commit; echo x >> a.py", ("a.py",), (".git/hooks/pre-commit",)),
        ("sh -c '(echo x > .envrc)'", (".envrc",), ()),
    ],
)
async def test_it_is_noticed_whatever_wrote_it(
    commands: str, files: tuple[str, ...], beside: tuple[str, ...], project: Project
) -> None:
    project.builder(commands)
    async with project.stage.open() as conversation:
        await tell(conversation, "[NEXT: builder, reader] Go.")
        assert conversation.progress.programs == {"1": ProgramChange(member="builder", files=files, beside=beside)}
        assert waiting(conversation) == ["reader"]


@pytest.mark.parametrize(
    "commands",
    [
        "echo two >> a.py",
        "echo x >> .gitignore; mkdir -p .venv/bin .pytest_cache; echo x > .venv/bin/y; echo x > .pytest_cache/z",
        'echo \'{"scripts": {"test": "x"}}\' > package.json',
        "git checkout -qb topic; git branch -q --track other topic; git gc -q",
        "echo x > .envrc; echo export A=1 > .envrc",
    ],
)
async def test_usual_work_is_not_asked_about(commands: str, project: Project) -> None:
    project.builder(commands)
    async with project.stage.open() as conversation:
        assert (await tell(conversation, "[NEXT: builder, reader] Go."))[-1] == "reader: I am reader."


async def test_a_member_with_full_permissions_is_asked_about_too(project: Project) -> None:
    project.builder("echo x > .envrc", permissions="full")
    async with project.stage.open() as conversation:
        await tell(conversation, "[NEXT: builder, reader] Go.")
        assert waiting(conversation) == ["reader"]
        assert conversation.progress.programs == {"1": ProgramChange(member="builder", files=(".envrc",))}


async def test_what_is_not_kept_can_only_be_kept_and_its_contents_are_in_no_record(project: Project) -> None:
    project.builder("echo TOKEN=hidden > .env; echo exit > .git/hooks/pre-commit")
    async with project.stage.open() as conversation:
        await tell(conversation, "[NEXT: builder] Go.")
        (decision,) = conversation_view(conversation).decisions
        assert [choice.typed for choice in decision.choices] == ["/allow 1"]
        assert "bullpen keeps no copy of '.env', '.git/hooks/pre-commit': put that right yourself." in decision.text
        (record,) = await records(conversation)
        assert (record.changes.files, record.changes.digests) == ((), ())
        assert record.changes.programs == (".env", ".git/hooks/pre-commit")
        assert record.changes.note == ""
        assert "hidden" not in str(record)


async def test_a_folder_that_is_no_repository_is_looked_at_too(stage: Stage) -> None:
    (stage.folder / "plain").mkdir()
    stage.person("kim")
    command = ["sh", "-c", "mkdir .idea; echo x > .idea/x.xml; echo x > .env; echo Done."]
    stage.members["a"] = {"name": "a", "command": command, "permissions": "edit", "cwd": "plain"}
    async with stage.open() as conversation:
        await tell(conversation, "Go.")
        assert conversation.progress.programs == {
            "1": ProgramChange(member="a", files=(".env",), beside=(".idea/x.xml",))
        }


async def test_a_repository_that_a_turn_makes_is_looked_at(stage: Stage) -> None:
    (stage.folder / "plain").mkdir()
    stage.person("kim")
    command = ["sh", "-c", "git init -q .; echo exit > .git/hooks/pre-commit; echo Done."]
    stage.members["a"] = {"name": "a", "command": command, "permissions": "edit", "cwd": "plain"}
    async with stage.open() as conversation:
        await tell(conversation, "Go.")
        assert ".git/hooks/pre-commit" in conversation.progress.programs["1"].beside


async def test_ignored_files_in_the_agents_own_folder_are_noticed(project: Project) -> None:
    (project.folder / "app" / "web").mkdir(parents=True)
    project.builder("echo X=1 > .env; echo X=1 > ../.env; mkdir ../../ignored; echo X=1 > ../../ignored/.env")
    project.stage.members["builder"]["cwd"] = "repo/app/web"
    async with project.stage.open() as conversation:
        await tell(conversation, "[NEXT: builder] Go.")
        assert conversation.progress.programs["1"].beside == ("app/.env", "app/web/.env")


async def test_one_of_several_results_is_asked_about_and_put_back_where_it_is(project: Project) -> None:
    project.agent("a", "echo x > .envrc; echo two >> a.py")
    project.agent("b", "echo three >> a.py")
    async with project.stage.open() as conversation:
        await tell(conversation, "[NEXT: a | b] Go.")
        ((turn, change),) = conversation.progress.programs.items()
        assert (change.member, change.files) == ("a", (".envrc",))
        await typed(conversation, f"/dismiss {turn}")
        await typed(conversation, "/pick a")
        assert (project.read(".envrc"), project.read("a.py")) == ("export A=1\n", "one\ntwo\n")


async def test_the_question_outlives_the_process(project: Project) -> None:
    project.builder("echo x > .envrc")
    async with project.stage.open() as conversation:
        await tell(conversation, "[NEXT: builder, reader] Go.")
    with closing(SqliteStore(project.stage.db)) as store:
        assert [one.kind for one in stored_view(store, conversation.id).decisions] == ["programs"]
        assert conversation_summary(store, conversation.id).state == "undecided"
    async with project.stage.open(resume=conversation.id) as again:
        assert [one.text for one in events_so_far(again, ProgramsChanged)] == [ASKED]
        assert [one.kind for one in conversation_view(again).decisions] == ["programs", "paused"]
        await again.continue_turns()
        await again.until_quiet()
        assert waiting(again) == ["reader"]
        await typed(again, "/dismiss 1")
        assert (project.read(".envrc"), waiting(again)) == ("export A=1\n", [])


async def test_it_is_asked_even_if_bullpen_was_killed_before_it_could_ask(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def killed(_: ProgramQuestions) -> None:
        pass

    project.builder("echo x > .envrc")
    with monkeypatch.context() as patched:
        patched.setattr(ProgramQuestions, "ask", killed)
        async with project.stage.open() as conversation:
            await tell(conversation, "[NEXT: builder] Go.")
            assert conversation.progress.programs == {}
    async with project.stage.open(resume=conversation.id) as again:
        await again.until_quiet()
        assert list(again.progress.programs) == ["1"]
        await again.keep_programs("1")
    async with project.stage.open(resume=conversation.id) as again:
        await again.until_quiet()
        assert again.progress.programs == {}


async def test_what_a_turn_wrote_during_which_bullpen_was_killed_is_asked_about(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise OSError("killed")

    project.builder("echo x > .envrc; echo exit > .git/hooks/pre-push")
    with monkeypatch.context() as patched:
        patched.setattr(FileHistory, "finish", killed)
        async with project.stage.open() as conversation:
            await conversation.say("[NEXT: builder] Go.")
            await conversation.until_quiet()
    async with project.stage.open(resume=conversation.id) as again:
        await again.until_quiet()
        assert again.progress.programs == {
            "1": ProgramChange(member="builder", files=(".envrc",), beside=(".git/hooks/pre-push",))
        }


async def test_what_a_check_wrote_is_asked_about(project: Project) -> None:
    project.builder("echo two >> a.py")
    project.stage.checks.append({"name": "tests", "command": ["sh", "-c", "echo x > .envrc"], "cwd": "repo"})
    async with project.stage.open() as conversation:
        await tell(conversation, "[NEXT: builder] Go.")
        assert conversation.progress.programs == {"1": ProgramChange(member="builder", files=(".envrc",))}
        await typed(conversation, "/dismiss 1")
        assert (project.read(".envrc"), project.read("a.py")) == ("export A=1\n", "one\ntwo\n")


async def test_in_a_workspace_of_its_own_it_is_put_back_where_it_was_merged(project: Project) -> None:
    project.builder("test -e two || { echo x > .envrc; touch two; }; cat .envrc", workspace="own")
    async with project.stage.open() as conversation:
        await tell(conversation, "[NEXT: builder] Go.")
        assert (project.read(".envrc"), list(conversation.progress.programs)) == ("x\n", ["1"])
        await typed(conversation, "/dismiss 1")
        assert (project.read(".envrc"), project.read("two")) == ("export A=1\n", "")
        assert [(one.kind, one.changes.folder) for one in await records(conversation)][2:] == [
            ("undo", str(project.folder.resolve()))
        ]
        assert (await tell(conversation, "[NEXT: builder] Again."))[-1] == "builder: Begun.\nexport A=1\nDone."


def test_run_stops_with_a_sentence_and_an_exit_code(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    project.builder("echo x > .envrc")
    team = str(project.stage.write())

    assert main(["run", "--trust", "--db", str(project.stage.db), team, "[NEXT: builder, reader] Go."]) == 3

    said = capsys.readouterr()
    assert f"? {ASKED}" in " ".join(said.out.split())
    assert f"Waiting for your decision: {ASKED}" in said.err
    assert "In chat: /allow 1 or /dismiss 1." in said.err
    assert "I am reader." not in said.out


def test_our_own_database_in_a_project_that_is_the_home_is_no_turns() -> None:
    ours, theirs = ".local/share/bullpen/conversations.db-wal", ".local/share/bullpen/trusted.json"
    workspace: Any = SimpleNamespace(
        root=Path("/x"), path_there="/elsewhere", program_digests=lambda _: dict.fromkeys((ours, theirs), "after")
    )
    begun = FolderChanges(folder="/x", digests=((ours, "before"), (theirs, "before")))

    assert with_programs(workspace, begun, FolderChanges(folder="/x")).programs == (theirs,)
