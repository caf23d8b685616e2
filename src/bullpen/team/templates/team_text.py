"""A team file from a template: filled in with agents, or with a script, with a person's name, and with the tests."""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import chain, count
from textwrap import wrap

from msgspec.structs import replace

from bullpen.agents.registry import agent_spec
from bullpen.errors import InvalidTeam
from bullpen.permissions import Permission
from bullpen.team.reader import read_team
from bullpen.team.templates.template import Role, Template

DEFAULT_PERSON = "you"


SECOND_OPINION = Role(
    name="second opinion",
    role="gives a second opinion",
    instruction="When you are asked, say in a few points what you would do differently, and why. Do not change any "
    "files, and do not hand over.",
    line="I would do it the same way. It is your turn again.",
)

HEAD = """\
# A team for bullpen. {purpose}
#
#   bullpen check {file}    says what is wrong with this file; bullpen doctor: are its agents signed in?
#   {then}
#
# A message with [NEXT: name] hands over to that member.

name = {team}
{lead}
[limits]
turns_per_message = 20      # after this many agent turns the conversation waits for you
back_and_forth = 6          # how many times two agents may answer each other in a row

[[member]]                  # a person needs only a name
name = {person}
"""

MEMBER = """
[[member]]
name = {name}
role = {role}
{runs}
system_instruction = {instruction}
{keys}"""

LEAD = """\
lead = {lead}  # who answers you first, as in [NEXT: …]
"""

AGENT = """\
agent = {agent}
permissions = {permissions}  # or: {others}{allow}"""

ALLOW = """
allow = {commands}  # what it may run without asking you, with any arguments"""

SCRIPTED = """\
# This agent is scripted. For a real one, replace the command with: agent = "claude", "codex", "gemini" or "qwen".
command = [{command},
  '{script}']"""

CHECK = """
[[check]]                   # runs after each turn that changes files; red or green stands with the turn
command = {command}
on_red = "return"           # send a red one back to who broke it, at most three times; or: "ask" (you decide)
"""
ANY_TESTS = "pytest -q"
"""The example in a file, where no tests were found."""

PERMISSIONS: tuple[Permission, ...] = ("read-only", "edit", "ask", "full")
LINE_WIDTH = 100
NO_BREAK = "\u00a0"


def team_text(
    template: Template,
    agents: Sequence[str],
    *,
    person: str,
    file: str = "team.toml",
    tests: Sequence[str] = (),
    check: str = "",
) -> str:
    """Return a team file for a template with these agent types, in this order. Without any, its agents are scripted.

    Fewer agents than roles take several roles each; those that are left over are asked for a second opinion.
    The person's name may be anything; one that is not valid as a member's name is changed. Agents that edit may run
    the commands in `tests`; `check` is the one that runs after each turn that changes files, if the template says so.
    """
    names = [person, re.sub(r"[^\w .-]", "", person).strip(), DEFAULT_PERSON]
    return next(text for name in names if _is_valid(text := _text(template, agents, name, file, tests, check)))


def _is_valid(text: str) -> bool:
    try:
        read_team(text)
    except InvalidTeam:
        return False
    return True


def _text(template: Template, agents: Sequence[str], person: str, file: str, tests: Sequence[str], check: str) -> str:
    shown = file if file.isprintable() else "FILE"
    head = HEAD.format(
        purpose=template.purpose,
        file=shown,
        then=template.then.format(file=shown),
        team=_toml(template.name),
        lead=LEAD.format(lead=_toml(template.lead)) if template.lead else "",
        person=_toml(person),
    )
    roles = [*template.roles, *_second_opinions(template, agents[len(template.roles) :])]
    members = [
        MEMBER.format(
            name=_toml(role.name),
            role=_toml(role.role),
            runs=_agent(role, agents[index % len(agents)], tests) if agents else _script(role),
            instruction=_paragraph(role.instruction),
            keys="".join(f"{key} = {_toml(value)}\n" for key, value in role.keys.items()),
        )
        for index, role in enumerate(roles)
    ]
    return head + "".join(members) + _check(template, check, tests)


def _check(template: Template, check: str, tests: Sequence[str]) -> str:
    """Return the tests as a check; as one that a person can switch on, if the template does not want it.

    Nothing if nobody edits, or if there are no tests that anybody could switch on.
    """
    if all(role.permissions == "read-only" for role in template.roles) or not (tests or template.checks_tests):
        return ""
    words = next(filter(None, (check, *tests, ANY_TESTS))).split()
    text = CHECK.format(command=f"[{', '.join(map(_toml, words))}]")
    return text if check and template.checks_tests else re.sub("(?m)^(?=.)", "# ", text)


def _second_opinions(template: Template, agents: Sequence[str]) -> Iterator[Role]:
    """Yield a role for each agent, named after it."""
    taken = {role.name for role in template.roles}
    for agent in agents:
        name = agent_spec(agent).short_name
        names = chain([name], (f"{name}-{number}" for number in count(2)))
        free = next(one for one in names if one not in taken)
        taken.add(free)
        yield replace(SECOND_OPINION, name=free)


def _agent(role: Role, agent: str, tests: Sequence[str]) -> str:
    spec = agent_spec(agent)
    # Who edits also runs tests and more, and is best asked about it.
    can_ask = "ask" in spec.with_permissions("ask").permissions
    permissions = "ask" if role.permissions == "edit" and can_ask else role.permissions
    may_run = tests and role.permissions == "edit" and (permissions == "ask" or spec.allow_arguments("edit", tests))
    return AGENT.format(
        agent=_toml(spec.short_name),
        permissions=_toml(permissions),
        others=", ".join(word for word in PERMISSIONS if word != permissions),
        allow=ALLOW.format(commands=f"[{', '.join(map(_toml, tests))}]") if may_run else "",
    )


def _script(role: Role) -> str:
    # It is written between apostrophes.
    script = json.dumps([{"say": role.line, "chunk": 4, "delay": 0.03}]).replace("'", "\\u0027")
    # A path that is not valid text cannot be written to a text file.
    python = sys.executable if sys.executable and sys.executable.isprintable() else "python3"
    command = ", ".join(map(_toml, [python, "-m", "bullpen.testing.agent", "--as", "text", "--script"]))
    return SCRIPTED.format(command=command, script=script)


def _toml(value: str | int) -> str:
    """Return a value as in TOML: the same as in JSON, except that DEL is escaped too."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def _paragraph(text: str) -> str:
    """Return a text as lines that TOML joins, without breaking a marker in two."""
    whole_markers = re.sub(r"\[[^]]*\]", lambda marker: marker[0].replace(" ", NO_BREAK), text)
    lines = wrap(whole_markers, LINE_WIDTH, break_on_hyphens=False)
    return '"""\\\n  ' + " \\\n  ".join(lines).replace(NO_BREAK, " ") + '"""'
