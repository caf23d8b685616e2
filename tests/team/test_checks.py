"""What only the machine knows to be wrong with a team: real folders, files and programs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bullpen.agents.registry import agent_spec
from bullpen.team.checks import check_team, hand_over_sentences, problems_of, shared_folder_sentences
from bullpen.team.instruction_files import MAX_BYTES
from bullpen.team.reader import read_team

RECORDINGS = Path(__file__).parents[1] / "agents" / "recordings"
HEAD = '[[member]]\nname = "kim"\n[[member]]\nname = "max"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program that is called claude."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "claude").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "claude").chmod(0o755)
    return tmp_path


def found(folder: Path, text: str, *, head: str = HEAD, **environ: str) -> list[str]:
    whole = head + text
    environ = {"PATH": str(folder / "bin"), **environ}
    problems = check_team(read_team(whole), folder, environ=environ, text=whole)
    return [f"{problem.severity}: {problem}".replace(str(folder), "ROOT") for problem in problems]


def test_a_team_that_can_work(folder: Path) -> None:
    assert found(folder, 'agent = "claude"\n') == []
    assert found(folder, f'command = ["{sys.executable}"]\n') == []


def test_an_agent_type_that_nobody_knows(folder: Path) -> None:
    [close] = found(folder, 'agent = "clade"\n')
    assert close.startswith(
        "error: line 5, member.2.agent: there is no agent type 'clade'. Did you mean claude or claude-code"
    )

    [far] = found(folder, 'agent = "zzz"\n')
    assert "Known types: claude, codex, " in far
    assert far.endswith('For any other program, use command = ["program"]')


def test_programs_that_are_not_there(folder: Path) -> None:
    assert found(folder, 'agent = "codex"\n') == [
        (
            "error: line 5, member.2.agent: the program 'codex' was not found. "
            "Install it with: npm install -g @openai/codex"
        )
    ]
    assert found(folder, 'command = ["./agent"]\n') == [
        (
            "error: line 5, member.2.command: the program './agent' was not found. "
            "Check the command './agent' in your team file, and your PATH."
        )
    ]


def test_a_program_that_may_not_be_run(folder: Path) -> None:
    (folder / "my agent").touch(mode=0o600)

    assert found(folder, 'command = ["./my agent"]\n') == [
        "error: line 5, member.2.command: './my agent' is not executable. Try: chmod +x 'ROOT/my agent'"
    ]
    assert found(folder, 'command = ["my agent"]\n') == [
        (
            "error: line 5, member.2.command: the program 'my agent' is not in your PATH. "
            "For the file in ROOT, write ./my agent"
        )
    ]


def test_permissions_of_a_command_are_not_enforced(folder: Path) -> None:
    command = f'command = ["{sys.executable}"]\n'

    assert found(folder, f'{command}permissions = "read-only"\n') == [
        (
            "warning: line 6, member.2.permissions: is not enforced: bullpen cannot restrict what a command does, and "
            "this one may do anything"
        )
    ]


def test_limits_that_count_nothing(folder: Path) -> None:
    (folder / "bin" / "codex").touch(mode=0o700)
    command = f'[[member]]\nname = "mei"\ncommand = ["{sys.executable}"]\n'
    more = f'[[member]]\nname = "ben"\nagent = "codex"\n{command}'

    assert found(folder, f'agent = "claude"\n{more}[limits]\ncost_usd = 5\ntokens = 90000\n') == [
        (
            "error: line 13, limits.cost_usd: cannot be measured for mei, whose program reports neither money nor "
            "tokens. Limit minutes or turns_per_message instead"
        ),
        (
            "error: line 13, limits.cost_usd: cannot be measured for ben, whose CLI reports tokens only: nobody knows "
            "which model it uses. Set a model that `bullpen prices` knows, or add its price to [prices]"
        ),
        (
            "error: line 14, limits.tokens: cannot be measured for mei, whose program reports no tokens. "
            "Limit minutes or turns_per_message instead"
        ),
    ]
    assert found(folder, 'agent = "claude"\n[limits]\ncost_usd = 5\ntokens = 90000\n') == []


def test_budgets_that_count_nothing(folder: Path) -> None:
    (folder / "bin" / "codex").touch(mode=0o700)
    own = "budget = { turns = 5, tokens = 9, cost_usd = 1, minutes = 5 }\n"
    command = f'[[member]]\nname = "mei"\ncommand = ["{sys.executable}"]\n{own}'

    assert found(folder, f'agent = "claude"\n{own}{command}') == [
        (
            "error: line 10, member.3.budget.cost_usd: cannot be measured for mei, whose program reports neither money "
            "nor tokens. Give it minutes or turns instead"
        ),
        (
            "error: line 10, member.3.budget.tokens: cannot be measured for mei, whose program reports no tokens. "
            "Give it minutes or turns instead"
        ),
    ]
    assert found(folder, 'agent = "codex"\n[budget]\nturns = 5\ncost_usd = 1\n') == [
        (
            "error: line 8, budget.cost_usd: cannot be measured for max, whose CLI reports tokens only: nobody knows "
            "which model it uses. Set a model that `bullpen prices` knows, or add its price to [prices]"
        )
    ]


def test_a_budget_that_counts_nothing_of_a_stand_in_names_it(folder: Path) -> None:
    (folder / "bin" / "codex").touch(mode=0o700)
    eva = f'[[member]]\nname = "eva"\ncommand = ["{sys.executable}"]\n'
    own = f'command = ["{sys.executable}"]\npermissions = "edit"\nstand_in = ["codex", "eva"]\n'

    problems = found(folder, f"{own}{eva}[budget]\ncost_usd = 1\n")
    assert [problem for problem in problems if problem.startswith("error")] == [
        (
            "error: line 12, budget.cost_usd: cannot be measured for max and eva, whose program reports neither money "
            "nor tokens. Give it minutes or turns instead"
        ),
        (
            "error: line 12, budget.cost_usd: cannot be measured for codex (a stand-in for max), whose CLI reports "
            "tokens only: nobody knows which model it uses. Set a model that `bullpen prices` knows, or add its price "
            "to [prices]"
        ),
    ]


def test_money_is_measured_by_the_price_of_a_model(folder: Path) -> None:
    (folder / "bin" / "codex").touch(mode=0o700)

    assert found(folder, 'agent = "codex"\nmodel = "gpt-5.1-codex"\n[limits]\ncost_usd = 5\n') == []
    assert found(folder, 'agent = "codex"\nmodel = "mine"\n[limits]\ncost_usd = 5\n') == [
        (
            "error: line 8, limits.cost_usd: cannot be measured for max, whose CLI reports tokens only: nobody knows "
            "the price of mine. Set a model that `bullpen prices` knows, or add its price to [prices]"
        )
    ]
    prices = "[prices]\nmine = { input = 1, output = 2.5 }\n"
    assert found(folder, f'agent = "codex"\nmodel = "mine"\n{prices}[limits]\ncost_usd = 5\n') == []


def test_a_program_is_looked_for_in_the_folder_of_its_member(folder: Path) -> None:
    assert found(folder, 'command = ["./claude"]\ncwd = "bin"\n') == []


def test_folders_that_cannot_be_worked_in(folder: Path) -> None:
    (folder / "file").touch()

    assert found(folder, 'agent = "claude"\ncwd = "none"\n') == [
        "error: line 6, member.2.cwd: there is no folder ROOT/none"
    ]
    assert found(folder, 'agent = "claude"\ncwd = "file"\n') == [
        "error: line 6, member.2.cwd: ROOT/file is not a folder"
    ]
    assert found(folder, 'agent = "claude"\ncwd = "file/below"\n') == [
        "error: line 6, member.2.cwd: there is no folder ROOT/file/below"
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read(folder: Path) -> None:
    (folder / "shut").mkdir(mode=0o000)
    (folder / "SHUT.md").touch(mode=0o000)

    assert found(folder, 'agent = "claude"\ncwd = "shut"\ninstruction_file = "SHUT.md"\n') == [
        "error: line 6, member.2.cwd: ROOT/shut cannot be read",
        (
            "warning: line 7, member.2.instruction_file: The instruction file 'SHUT.md' cannot be read: Permission "
            "denied. Change it, or instruction_file. Agents will work without it"
        ),
    ]
    (folder / "shut").chmod(0o700)


def test_instruction_files(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "SECRET.md"
    outside.touch()
    (folder / "LINK.md").symlink_to(outside)
    (folder / "LOOP.md").symlink_to("LOOP.md")
    (folder / "BIG.md").write_bytes(b"x" * (MAX_BYTES + 1))
    (folder / "LONG.md").write_bytes(b"x" * 500_000)
    (folder / "LATIN.md").write_bytes("qu\xe9".encode("latin-1"))
    (folder / "GOOD.md").write_bytes(b"x" * 300_000)
    agent = 'agent = "claude"\n'

    def reason(name: str, head: str = "") -> str:
        [problem] = found(folder, f'{agent}instruction_file = "{name}"\n', head=head + HEAD) or [": : fine"]
        text = problem.split(": ", 2)[2]
        return text.removeprefix("The instruction file ").removesuffix(" Agents will work without it")

    stays_inside = "is outside ROOT. Move it into that folder, or set outside_files = true in the team file."
    assert reason("GOOD.md") == "fine"
    assert reason("LINK.md") == f"'LINK.md' {stays_inside}"
    assert reason(str(outside)) == f"'{outside}' {stays_inside}"
    assert reason("LINK.md", "outside_files = true\n") == "fine"
    assert reason("NONE.md") == "'NONE.md' does not exist. Write it, or change instruction_file."
    assert reason("LOOP.md").startswith("'LOOP.md' cannot be read: ")
    assert reason("bin") == "'bin' is not a regular file. Name a text file as instruction_file."
    assert reason("BIG.md") == "'BIG.md' is longer than 16 MiB. Shorten it."
    assert reason("LATIN.md") == "'LATIN.md' is not valid UTF-8 (line 1). Save it as UTF-8."
    assert reason("LONG.md") == "'LONG.md' has 500,000 bytes, so agents get only its beginning and end"
    assert found(folder, agent, head='instruction_file = "NONE.md"\n' + HEAD) == [
        (
            "warning: line 1, instruction_file: The instruction file 'NONE.md' does not exist. Write it, or change "
            "instruction_file. Agents will work without it"
        )
    ]
    assert found(folder, f"{agent}instruction_file = false\n") == []


def test_a_file_that_is_found_by_itself_is_looked_at_too(folder: Path) -> None:
    (folder / "CLAUDE.md").write_bytes(b"\xff")

    assert found(folder, 'agent = "claude"\n') == [
        (
            "warning: line 3, member.2: The instruction file 'CLAUDE.md' is not valid UTF-8 (line 1). "
            "Save it as UTF-8. Agents will work without it"
        )
    ]
    assert found(folder, 'agent = "claude"\ninstruction_file = false\n') == []
    assert found(folder, f'command = ["{sys.executable}"]\n') == []


def test_a_task_that_will_be_cut(folder: Path) -> None:
    task = "x" * 10_009

    assert found(folder, 'agent = "claude"\n', head=f'task = "{task}"\n{HEAD}') == [
        "warning: line 1, task: The team task has 10,009 bytes. Agents get the first 5,120 of them."
    ]
    assert found(folder, 'agent = "claude"\n', head=f'task = "{"x" * 5120}"\n{HEAD}') == []


def test_an_unknown_agent_type_with_a_command_gets_plain_text(folder: Path) -> None:
    assert found(folder, f'agent = "custom-agent"\ncommand = ["{sys.executable}"]\n') == [
        (
            "warning: line 5, member.2.agent: 'custom-agent' is not a known agent type, so it gets its prompt "
            "as plain text"
        )
    ]


def test_a_known_agent_type_may_be_another_program(folder: Path) -> None:
    assert found(folder, 'agent = "claude"\ncommand = ["./bin/claude"]\npermissions = "edit"\n') == []


def test_variables_that_are_not_set_are_a_warning(folder: Path) -> None:
    text = 'agent = "claude"\nenv = ["TOKEN", "OTHER"]\n'

    assert found(folder, text, TOKEN="x") == [
        "warning: line 6, member.2.env: OTHER is not set, so it cannot be passed on"
    ]


def test_what_permissions_mean(folder: Path) -> None:
    assert found(folder, 'agent = "claude"\npermissions = "full"\n') == [
        "remark: line 6, member.2.permissions: this agent may run any command and change any file without being asked"
    ]
    assert found(folder, f'command = ["{sys.executable}"]\npermissions = "full"\n') == [
        (
            "remark: line 6, member.2.permissions: bullpen cannot restrict what a command does; you are asked before "
            "other agents hand over to it"
        )
    ]
    assert found(folder, f'command = ["{sys.executable}"]\npermissions = "edit"\n') == [
        (
            "remark: line 6, member.2.permissions: only keeps others from editing beside it; bullpen cannot "
            "restrict what a command does"
        )
    ]


def test_an_agent_that_would_not_ask_is_refused(folder: Path) -> None:
    for program in ("pi", "codex"):
        (folder / "bin" / program).symlink_to("claude")
    asking = 'agent = "codex"\npermissions = "ask"\n'
    home = folder / "home"
    rules = home / ".codex" / "rules" / "default.rules"
    rules.parent.mkdir(parents=True)

    assert found(folder, 'agent = "pi"\npermissions = "ask"\n') == [
        (
            "error: line 6, member.2.permissions: pi cannot ask before it does something; permissions can be "
            "read-only, edit, full"
        )
    ]
    for text in ("", "# prefix_rule()", 'prefix_rule(pattern=["a"], decision = "prompt")'):
        rules.write_text(text)
        assert found(folder, asking, HOME=str(home)) == []
    strict = 'prefix_rule(pattern=["a"], decision="forbidden")\n'
    for text in ('prefix_rule(pattern=["a"])', strict + 'prefix_rule(pattern=["b"], decision="allow")'):
        rules.write_text(text)
        assert found(folder, asking, HOME=str(home)) == [
            (
                "error: line 6, member.2.permissions: a rule in ROOT/home/.codex/rules/default.rules lets Codex run "
                "commands without asking. Remove it, so that bullpen is asked: `allow` in the team file does the same. "
                "Or choose other permissions"
            )
        ]
        assert found(folder, 'agent = "codex"\npermissions = "edit"\n', HOME=str(home)) == []


def test_what_an_instruction_file_imports_is_looked_at_too(folder: Path) -> None:
    (folder / "AGENTS.md").write_text("@style.md and @gone.md")
    (folder / "style.md").write_bytes(b"x" * 500_000)

    missing, large = found(folder, 'agent = "claude"\n')

    assert missing.endswith("'gone.md' in AGENTS.md is not imported: it does not exist. Agents will work without it")
    assert large.endswith("'AGENTS.md' with 1 more has 500,025 bytes, so agents get only its beginning and end")


def test_what_only_an_agent_that_asks_can_have(folder: Path) -> None:
    assert found(folder, 'agent = "claude"\npermissions = "ask"\nallow = ["git diff*"]\ndeny = ["git push"]\n') == []
    useless = found(folder, 'agent = "claude"\npermissions = "edit"\nallow = ["git diff*"]\ndeny = ["git push"]\n')
    assert [text.partition(": ")[0] for text in useless] == ["warning", "error"]
    assert "line 8, member.2.deny: has no effect" in useless[0]
    assert "line 7, member.2.allow: 'git diff*' can be allowed only with" in useless[1]
    (far,) = found(folder, 'agent = "claude"\npermissions = "ask"\npool = "box"\n')
    assert "its turns run on workers" in far


def test_what_is_the_same_for_many_is_said_once_and_after_what_is_wrong(folder: Path) -> None:
    text = HEAD + f'command = ["{sys.executable}"]\npermissions = "edit"\n'
    for name in ("one", "two"):
        text += f'[[member]]\nname = "{name}"\ncommand = ["{sys.executable}"]\npermissions = "edit"\n'
    text += 'cwd = "missing"\n'
    first, *rest = problems_of(text, folder)
    assert first.severity == "error"
    (remark,) = [one for one in rest if one.severity == "remark"]
    assert remark.text.endswith("(the same for one and two)")
    assert rest[-1] == remark


BOSS = '[[member]]\nname = "boss"\nagent = "claude"\npermissions = "full"\n'


def test_a_way_to_full_permissions_without_a_yes_is_a_warning(folder: Path) -> None:
    def warnings(settings: str) -> list[str]:
        problems = found(folder, f'agent = "claude"\n{settings}{BOSS}')
        return [problem for problem in problems if not problem.startswith("remark")]

    assert warnings('may_address = ["kim", "boss"]\n') == [
        (
            "warning: line 6, member.2.may_address: lets max (read-only) hand over to boss (full) without a person's "
            "yes, and with it every agent that can hand over to max"
        )
    ]
    assert warnings('permissions = "edit"\nmay_address = ["boss"]\n') == [
        (
            "warning: line 7, member.2.may_address: lets max (edit) hand over to boss (full) without a person's "
            "yes, and with it every agent that can hand over to max"
        )
    ]
    assert warnings('permissions = "full"\nmay_address = ["boss"]\n') == []
    assert warnings('reviews = "boss"\nuntil = "approved"\n') == [
        (
            "warning: line 6, member.2.reviews: sends what max (read-only) asks for to boss (full) without a person's "
            "yes: it may have read in the work what to ask for"
        )
    ]
    assert warnings('permissions = "full"\nreviews = "boss"\nuntil = "approved"\n') == []
    assert warnings('may_address = ["kim"]\n') == []
    assert warnings("") == []


def test_who_can_hand_over_to_whom_in_words() -> None:
    def sentences(*members: str) -> list[str]:
        return list(hand_over_sentences(read_team(HEAD + "".join(members))))

    scout, writer = 'agent = "codex"\n', '[[member]]\nname = "lee"\nagent = "claude"\npermissions = "edit"\n'
    program = '[[member]]\nname = "tool"\ncommand = ["x"]\nmay_address = ["kim"]\n'
    assert sentences(scout) == []
    assert sentences(scout, BOSS) == [
        "max (read-only) can hand over to boss (full) only with a person's yes.",
        "boss (full) can hand over to max.",
    ]
    assert sentences(scout, BOSS, writer, program) == [
        "max (read-only) can hand over to lee and tool, and to boss (full) only with a person's yes.",
        "boss (full) can hand over to max, lee and tool.",
        "lee (edit) can hand over to max and tool, and to boss (full) only with a person's yes.",
        "tool (a command: not restricted) cannot hand over to another agent.",
    ]


def test_models(folder: Path) -> None:
    assert found(folder, 'agent = "claude"\nmodel = "--evil"\n') == [
        "error: line 6, member.2.model: '--evil' is not a model name: it would be read as an option"
    ]
    assert found(folder, 'agent = "qwen"\npermissions = "ask"\nmodel = "--include-directories=/etc"\n')[1:] == [
        "error: line 7, member.2.model: '--include-directories=/etc' is not a model name: it would be read as an option"
    ]
    assert found(folder, 'agent = "qwen"\npool = "gpu"\nmodel = "--yolo"\n')[-1:] == [
        "error: line 7, member.2.model: '--yolo' is not a model name: it would be read as an option"
    ]
    assert found(folder, 'agent = "claude"\nmodel = "a\\n--evil"\n') == [
        "error: line 6, member.2.model: 'a\\n--evil' is not a model name: it must be one line without spaces around it"
    ]
    assert found(folder, f'command = ["{sys.executable}"]\nmodel = "opus"\n') == [
        "warning: line 6, member.2.model: has no effect: bullpen cannot set the model of this program"
    ]


@pytest.mark.parametrize(
    ("settings", "remark"),
    [
        ('agent = "claude"', ""),
        ('agent = "claude"\npermissions = "edit"', ""),
        ('agent = "claude"\npermissions = "full"', "remark: has no effect: this agent may run any command"),
        ('agent = "codex"', "remark: has no effect: Codex runs any command, in its own sandbox"),
        ('command = ["./bin/claude"]', "remark: has no effect: bullpen cannot restrict what a command does"),
        ('agent = "qwen"\npermissions = "edit"', ""),
        (
            'agent = "gemini"',
            "warning: has no effect: with allowed commands, this CLI could do more than read-only",
        ),
        (
            'agent = "qwen"',
            "warning: has no effect: with allowed commands, this CLI could do more than read-only",
        ),
    ],
)
def test_allowed_commands_that_change_nothing(folder: Path, settings: str, remark: str) -> None:
    problems = found(folder, f'{settings}\nallow = ["pytest"]\n')

    said = [re.sub(r"line \d+, member.2.allow: ", "", problem) for problem in problems if ".allow" in problem]
    assert said == ([remark] if remark else [])


def test_a_memory_of_its_own_for_an_agent_that_cannot_have_one(folder: Path) -> None:
    (folder / "bin" / "gemini").symlink_to(folder / "bin" / "claude")
    assert found(folder, 'agent = "claude"\nmemory = "own"\nmemory_tokens = 5_000\n') == []
    assert found(folder, f'command = ["{sys.executable}"]\nmemory = "own"\n') == [
        (
            'error: line 6, member.2.memory: "own" is not possible: '
            "bullpen does not know whether its program keeps sessions. "
            'Write "shared", or choose claude, codex, copilot, pi or qwen as the agent'
        )
    ]
    assert found(folder, 'agent = "gemini"\nmemory = "own"\n') == [
        (
            "warning: line 6, member.2.memory: gemini does not continue a session exactly as it was: its model gets "
            'things twice, such as the results of tools. With "shared", each turn is given the conversation instead'
        )
    ]
    assert found(folder, f'agent = "claude"\ncommand = ["{sys.executable}"]\nmemory = "own"\n') == [
        (
            "remark: line 7, member.2.memory: works only if this command keeps sessions as claude does; "
            "if not, every turn begins one"
        )
    ]


@pytest.mark.parametrize("memory", ["own", "shared"])
def test_a_session_that_may_be_somebody_elses(memory: str, folder: Path) -> None:
    keys = f'memory = "{memory}"\narguments = ["--resume=0f9d1c35", "--verbose"]\n'
    assert found(folder, f'agent = "claude-code"\n{keys}') == [
        (
            "error: line 7, member.2.arguments: --resume chooses a session, which may be somebody else's; bullpen "
            "chooses it for each turn. Take it out; to continue a session of yours: bullpen import --from claude --list"
        )
    ]


def test_a_cli_that_is_told_to_keep_no_session(folder: Path) -> None:
    keys = 'agent = "claude"\narguments = ["--no-session-persistence"]\n'
    assert found(folder, keys) == [
        (
            "warning: line 6, member.2.arguments: with --no-session-persistence every turn begins a new session: "
            'take it out, or write memory = "shared"'
        )
    ]
    assert found(folder, f'{keys}memory = "shared"\n') == []


def test_every_option_that_chooses_a_session_is_one_of_its_cli() -> None:
    for cli in ("claude", "codex", "gemini", "qwen", "others/pi"):
        sessions = agent_spec(cli.removeprefix("others/")).sessions
        assert sessions is not None
        flags = (RECORDINGS / cli / "flags.txt").read_text(encoding="utf-8").split()
        named = {*sessions.start, *sessions.resume, *sessions.fork} - {"{id}"}
        assert named <= set(sessions.chosen_by)
        assert {one for one in (*sessions.chosen_by, *sessions.not_kept_with) if one.startswith("--")} <= set(flags)


def test_a_size_of_a_memory_that_there_is_not(folder: Path) -> None:
    assert found(folder, f'agent = "claude"\ncommand = ["{sys.executable}"]\nmemory_tokens = 5_000\n') == [
        (
            "remark: line 7, member.2.memory_tokens: has no effect: its command may not keep sessions; "
            'if it does as claude does, write memory = "own"'
        )
    ]
    assert found(folder, 'agent = "claude"\nmemory = "shared"\nmemory_tokens = 5_000\n') == [
        (
            'remark: line 7, member.2.memory_tokens: has no effect: the team file says memory = "shared" or '
            'prompts = "specification"'
        )
    ]


def test_what_is_wrong_with_a_default_is_found_in_its_line(folder: Path) -> None:
    head = f'[defaults]\npermissions = "full"\nbudget = {{ tokens = 5 }}\n{HEAD}'

    assert found(folder, f'command = ["{sys.executable}"]\n', head=head) == [
        (
            "error: line 3, member.2.budget.tokens: cannot be measured for max, whose program reports no tokens. "
            "Give it minutes or turns instead"
        ),
        (
            "remark: line 2, member.2.permissions: bullpen cannot restrict what a command does; you are asked before "
            "other agents hand over to it"
        ),
    ]


def test_remarks_on_prompts(folder: Path) -> None:
    (folder / "bin" / "claude").rename(folder / "bin" / "qwen")

    assert found(folder, 'agent = "qwen"\n', head=f'prompts = "specification"\n{HEAD}') == [
        "remark: line 6, member.2.agent: qwen gets its prompt as plain text: the specification has no layout for it"
    ]
    assert found(folder, 'agent = "qwen"\n', head=f"message_header = false\n{HEAD}") == [
        (
            "remark: line 1, message_header: is an old key that still works; "
            'prompts = "specification" leaves out all that bullpen adds'
        )
    ]


def test_a_workspace_of_its_own_needs_a_repository_with_a_commit(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = 'agent = "claude"\npermissions = "edit"\nworkspace = "own"\n'
    with monkeypatch.context() as patched:
        patched.setattr("bullpen.files.worktree.find_git", lambda: None)
        assert found(folder, own) == [
            (
                'error: line 7, member.2.workspace: "own" is not possible: git is not installed. '
                'Install it, or write "shared"'
            )
        ]
    assert found(folder, own) == [
        (
            'error: line 7, member.2.workspace: "own" is not possible: ROOT is not in a git repository. '
            'Make it one with `git init`, and commit something, or write "shared"'
        )
    ]
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    # A program of the repository itself is never run.
    programs = {"PATH": str(shutil.copytree(folder / "bin", tmp_path_factory.mktemp("programs"), dirs_exist_ok=True))}
    assert found(folder, own, **programs) == [
        (
            'error: line 7, member.2.workspace: "own" is not possible: the repository ROOT has no commit yet. '
            'Commit something first, or write "shared"'
        )
    ]
    names = ("-c", "user.name=kim", "-c", "user.email=kim@example.org")
    subprocess.run(["git", *names, "commit", "-q", "--allow-empty", "-m", "first"], cwd=folder, check=True)
    assert found(folder, own, **programs) == []
    assert found(folder, 'agent = "claude"\nworkspace = "own"\n', **programs) == [
        "remark: line 6, member.2.workspace: has no effect: this agent may not edit files"
    ]


def test_agents_that_edit_the_same_files_are_named(tmp_path: Path) -> None:
    def sentences(*more: str) -> list[str]:
        members = [f'[[member]]\nname = "m{number}"\nagent = "claude"\n{one}\n' for number, one in enumerate(more)]
        return list(shared_folder_sentences(read_team('[[member]]\nname = "kim"\n' + "".join(members)), tmp_path))

    edit = 'permissions = "edit"'
    assert sentences(edit, edit, 'permissions = "full"') == [
        (
            f"m0, m1 and m2 edit the same files in {tmp_path}: asked together, with &, one may overwrite what another "
            'does. workspace = "own" keeps them apart.'
        )
    ]
    assert sentences(edit, "", f'{edit}\nworkspace = "own"', f'{edit}\ncwd = "other"') == []


def test_stand_ins_that_are_not_ready(folder: Path) -> None:
    missing, unknown = found(folder, 'agent = "claude"\nstand_in = ["codex", "kodex"]\n')
    assert missing.startswith(
        "warning: line 6, member.2.stand_in: codex is not ready: the program 'codex' was not found. Install it with: "
    )
    assert unknown.startswith(
        "error: line 6, member.2.stand_in: 'kodex' is neither an agent of this team nor an agent type. Agent types: "
    )
    (folder / "bin" / "codex").touch(mode=0o700)
    assert found(folder, 'agent = "claude"\nstand_in = ["codex"]\n') == []


def test_a_stand_in_on_another_machine_reads_the_files_there(folder: Path) -> None:
    far = '[[member]]\nname = "far"\nagent = "claude"\npool = "gpu-box"\n'
    said = found(folder, f'agent = "claude"\nstand_in = ["far"]\n{far}')
    assert (
        "remark: line 6, member.2.stand_in: far runs on workers of 'gpu-box': in the role of max it reads the files of "
        "'.' there"
    ) in said
