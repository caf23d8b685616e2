"""Team files for beginners: a few ways to work together, filled in with the installed agents."""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import chain, count
from textwrap import wrap

from msgspec import Struct
from msgspec.structs import replace

from bullpen.agents.registry import agent_spec
from bullpen.errors import InvalidTeam
from bullpen.permissions import Permission
from bullpen.team.reader import read_team

DEFAULT_PERSON = "you"


class Role(Struct, frozen=True, kw_only=True):
    """The part of one agent in a template."""

    name: str
    role: str
    instruction: str
    permissions: Permission = "read-only"
    line: str
    """What it says when it is scripted."""


class Template(Struct, frozen=True, kw_only=True):
    """A way to work together. The first role is the lead."""

    name: str
    purpose: str
    roles: tuple[Role, ...]


PAIR = Template(
    name="pair",
    purpose="One builds, one reviews.",
    roles=(
        Role(
            name="builder",
            role="writes the code",
            permissions="edit",
            instruction="Build what is asked in small steps, with tests. Then hand over with [NEXT: reviewer].",
            line="I would build it now, with a test. Please take a look.\n\n[NEXT: reviewer]",
        ),
        Role(
            name="reviewer",
            role="reads the code",
            instruction="Review what the builder did. If something must change, say what and hand over with "
            "[NEXT: builder]; if not, say so and do not hand over.",
            line="I would read it now, and I have nothing to add. It is your turn again.",
        ),
    ),
)

REVIEW = Template(
    name="review",
    purpose="Two review at the same time, each with a different focus; no files are changed.",
    roles=(
        Role(
            name="guide",
            role="says what to review",
            instruction="Say in two sentences what is to be reviewed and where it is. Then hand over with "
            "[NEXT: correctness & safety, editor].",
            line="Two of us will review it at the same time, then the editor.\n\n[NEXT: correctness & safety, editor]",
        ),
        Role(
            name="correctness",
            role="looks for bugs",
            instruction="Look for bugs: wrong results, missing cases, tests that cannot fail. Name file and line.",
            line="I would look for wrong results and missing cases.",
        ),
        Role(
            name="safety",
            role="looks for risks",
            instruction="Look for risks: trusted input, secrets, lost data, races. Name file and line.",
            line="I would look for trusted input and lost data.",
        ),
        Role(
            name="editor",
            role="sums up",
            instruction="Sum up what both found: what must change, what could change, what is good. Do not hand over.",
            line="I would sum up now. It is your turn again.",
        ),
    ),
)

DESIGN_BUILD_TEST = Template(
    name="design-build-test",
    purpose="One designs, one builds, one tests, one after the other.",
    roles=(
        Role(
            name="designer",
            role="decides how to build it",
            instruction="Write a short design: what changes where, and how we will know that it works. Do not change "
            "any files. Then hand over with [NEXT: builder].",
            line="A small design: one function, one test.\n\n[NEXT: builder]",
        ),
        Role(
            name="builder",
            role="writes the code",
            permissions="edit",
            instruction="Build what the designer wrote, nothing else. Then hand over with [NEXT: tester].",
            line="I would build it now.\n\n[NEXT: tester]",
        ),
        Role(
            name="tester",
            role="tries to break it",
            permissions="edit",
            instruction="Write tests that try to break it. If one does, hand over with [NEXT: builder]; if none does, "
            "say what you tried and do not hand over.",
            line="I would try to break it now. It is your turn again.",
        ),
    ),
)

DEBATE = Template(
    name="debate",
    purpose="Two argue, a third decides; no files are changed.",
    roles=(
        Role(
            name="for",
            role="argues for it",
            instruction="Make the strongest honest case for the proposal, in a few points. Then hand over with "
            "[NEXT: against].",
            line="The best reason for it: it is simple.\n\n[NEXT: against]",
        ),
        Role(
            name="against",
            role="argues against it",
            instruction="Answer each point with the strongest honest case against the proposal. Then hand over with "
            "[NEXT: judge].",
            line="The best reason against it: nobody has asked for it.\n\n[NEXT: judge]",
        ),
        Role(
            name="judge",
            role="decides",
            instruction="Weigh both sides, decide, and say what would change your mind. Do not hand over.",
            line="I would decide now. It is your turn again.",
        ),
    ),
)

SECOND_OPINION = Role(
    name="second opinion",
    role="gives a second opinion",
    instruction="When you are asked, say in a few points what you would do differently, and why. Do not change any "
    "files, and do not hand over.",
    line="I would do it the same way. It is your turn again.",
)

TEMPLATES = {template.name: template for template in (PAIR, REVIEW, DESIGN_BUILD_TEST, DEBATE)}

HEAD = """\
# A team for bullpen. {purpose}
#
#   bullpen check {file}    says what is wrong with this file; bullpen doctor: are its agents signed in?
#   bullpen chat {file}     starts a conversation
#
# A message with [NEXT: name] hands over to that member.

name = {team}

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
# [[check]]                 # runs after each turn that changes files; red or green stands with the turn
# command = {command}
# on_red = "return"         # send a red one back to who broke it, at most three times; or: "ask" (you decide)
"""

PERMISSIONS: tuple[Permission, ...] = ("read-only", "edit", "ask", "full")
LINE_WIDTH = 100
NO_BREAK = "\u00a0"


def team_text(
    template: Template, agents: Sequence[str], *, person: str, file: str = "team.toml", tests: Sequence[str] = ()
) -> str:
    """Return a team file for a template with these agent types, in this order. Without any, its agents are scripted.

    Fewer agents than roles take several roles each; those that are left over are asked for a second opinion.
    The person's name may be anything; one that is not valid as a member's name is changed. Agents that edit may run
    the commands in `tests`.
    """
    names = [person, re.sub(r"[^\w .-]", "", person).strip(), DEFAULT_PERSON]
    return next(text for name in names if _is_valid(text := _text(template, agents, name, file, tests)))


def _is_valid(text: str) -> bool:
    try:
        read_team(text)
    except InvalidTeam:
        return False
    return True


def _text(template: Template, agents: Sequence[str], person: str, file: str, tests: Sequence[str]) -> str:
    shown = file if file.isprintable() else "FILE"
    head = HEAD.format(purpose=template.purpose, file=shown, team=_toml(template.name), person=_toml(person))
    roles = [*template.roles, *_second_opinions(template, agents[len(template.roles) :])]
    members = [
        MEMBER.format(
            name=_toml(role.name),
            role=_toml(role.role),
            runs=_agent(role, agents[index % len(agents)], tests) if agents else _script(role),
            instruction=_paragraph(role.instruction),
        )
        for index, role in enumerate(roles)
    ]
    return head + "".join(members) + _check(template, tests)


def _check(template: Template, tests: Sequence[str]) -> str:
    """Return the usual tests as a check that a person can switch on; nothing if there are none, or nobody edits."""
    if not tests or all(role.permissions == "read-only" for role in template.roles):
        return ""
    return CHECK.format(command=f"[{', '.join(map(_toml, tests[0].split()))}]")


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
    script = json.dumps([{"say": role.line, "chunk": 4, "delay": 0.03}])
    # A path that is not valid text cannot be written to a text file.
    python = sys.executable if sys.executable and sys.executable.isprintable() else "python3"
    command = ", ".join(map(_toml, [python, "-m", "bullpen.testing.agent", "--as", "text", "--script"]))
    return SCRIPTED.format(command=command, script=script)


def _toml(text: str) -> str:
    """Return a text as a TOML string: the same as in JSON, except that DEL is escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def _paragraph(text: str) -> str:
    """Return a text as lines that TOML joins, without breaking a marker in two."""
    whole_markers = re.sub(r"\[[^]]*\]", lambda marker: marker[0].replace(" ", NO_BREAK), text)
    lines = wrap(whole_markers, LINE_WIDTH, break_on_hyphens=False)
    return '"""\\\n  ' + " \\\n  ".join(lines).replace(NO_BREAK, " ") + '"""'
