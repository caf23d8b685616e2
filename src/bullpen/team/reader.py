"""Reading a team file: the team it describes, or everything that is wrong with it.

It only reads the text of a team.toml. Which files exist and which CLIs are installed is checked elsewhere.
"""

import itertools
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bullpen.errors import InvalidTeam, TeamProblem
from bullpen.prices.price import Price
from bullpen.team.keys import (
    AGENT_KEYS,
    BUDGET_KEYS,
    CHECK_KEYS,
    DEFAULT_KEYS,
    LIMIT_KEYS,
    LONGEST_CHECK_NAME,
    OLD_TEAM_KEYS,
    PERSON_KEYS,
    PRICE_KEYS,
    SUMMARY_KEYS,
    TEAM_KEYS,
    Kind,
    check_name,
)
from bullpen.team.lead import read_lead
from bullpen.team.reviewers import review_problems
from bullpen.team.specified_prompts import as_specified, contradictions
from bullpen.team.stand_ins import why_not
from bullpen.team.table_reader import Path, TableReader, read_toml, shown, suggestion
from bullpen.team.team import BULLPEN, EVERYONE, Budget, Check, Limits, Member, SummaryRules, Team
from bullpen.team.toml_lines import TomlLines
from bullpen.text.names import normalized

# These would end a name in [NEXT: …] or [DROP: …], or start something else there.
NOT_IN_NAMES = "[]［］,，、&＆|｜!！:：\n\r`"

TABLES = ("defaults", "limits", "budget", "summaries", "prices")
LISTS = ("member", "check")
MOST_WORDS = 3
"""Of a command, in the name of a check that has no other."""
_PLAIN_WORD = re.compile(r"[A-Za-z][\w.:-]*")


def read_team(text: str) -> Team:
    """Return the team that a team.toml describes, or raise InvalidTeam with everything that is wrong with it."""
    team, problems = examine_team(text)
    if team is None or problems:
        raise InvalidTeam(problems)
    return team


def examine_team(text: str) -> tuple[Team | None, tuple[TeamProblem, ...]]:
    """Return everything that is wrong with a team.toml, and the team as far as it can be read, for further checks."""
    text = text.removeprefix("\ufeff")
    document, problem = read_toml(text)
    if problem is not None:
        return None, (problem,)
    reader = _Reader(document, TomlLines(text))
    team = reader.team()
    return team, tuple(sorted(reader.problems, key=lambda problem: problem.line or 0))


class _Reader(TableReader):
    """Reads a document and collects every problem."""

    def __init__(self, document: Mapping[str, Any], lines: TomlLines) -> None:
        super().__init__(lines)
        self._document = document

    def team(self) -> Team:
        """Return the team; use it only if there are no problems."""
        tables = {**dict.fromkeys(TABLES, dict), **dict.fromkeys(LISTS, list)}
        values = self.values(self._document, TEAM_KEYS | OLD_TEAM_KEYS, (), skip=tables)
        for name, kind in tables.items():
            if not isinstance(self._document.get(name, kind()), kind):
                self.problem((name,), f"must be {f'a table [{name}]' if kind is dict else f'tables [[{name}]]'}")
        limits = self._document.get("limits", {})
        summaries = self._document.get("summaries", {})
        members = tuple(self._members())
        team = Team(
            **{"name": "team", "lead": next((m.name for m in members if m.type == "ai"), ""), **values},
            members=members,
            limits=Limits(**self.values(limits, LIMIT_KEYS, ("limits",))) if isinstance(limits, dict) else Limits(),
            budget=self._budget(self._document.get("budget"), ("budget",)),
            summaries=SummaryRules(**self.values(summaries, SUMMARY_KEYS, ("summaries",)))
            if isinstance(summaries, dict)
            else SummaryRules(),
            prices=dict(self._prices()),
            checks=tuple(self._checks()),
        )
        self._check_people(team)
        self._check_names(team)
        self._check_names_of_checks(team)
        self._check_stand_ins(team)
        for path, text in review_problems(team):
            self.problem(path, text)
        self._check_summarizer(team)
        if team.prompts != "specification":
            return team
        for path, text in contradictions(self._document):
            self.problem(path, text)
        return as_specified(team)

    def _budget(self, table: object, path: Path) -> Budget:
        return Budget(**self.values(table, BUDGET_KEYS, path)) if isinstance(table, dict) else Budget()

    def _prices(self) -> Iterator[tuple[str, Price]]:
        tables = self._document.get("prices", {})
        for model, table in (tables if isinstance(tables, dict) else {}).items():
            path: Path = ("prices", model)
            values = self.values(table, PRICE_KEYS, path) if isinstance(table, dict) else {}
            if not {"input", "output"} <= values.keys():
                like = f"{shown(model)} = {{ input = 1.25, output = 10 }}"
                self.problem(path, f"needs an input and an output price. Write, for example, {like}")
                continue
            yield model, Price(**values)

    def _members(self) -> Iterator[Member]:
        tables, defaults = self._document.get("member", []), self._defaults()
        for index, table in enumerate(tables if isinstance(tables, list) else []):
            path: Path = ("member", index)
            if not isinstance(table, dict):
                self.problem(path, "must be a table [[member]]")
                continue
            has_program = "agent" in table or "command" in table
            is_agent = has_program or table.get("type") == "ai"
            values = self._member_values(table, AGENT_KEYS if is_agent else PERSON_KEYS, path)
            if "name" not in table:
                self.problem(path, "has no name")
            if is_agent and not has_program:
                self.problem(path, 'needs agent = "claude" (or another CLI) or command = ["program"]')
            if has_program and table.get("type") == "human":
                self.problem((*path, "type"), "a member with an agent or a command cannot be human")
            if is_agent:
                values = {**_left_open(defaults, values), **values}
            yield Member(**{"name": f"member {index + 1}", **values, "type": "ai" if is_agent else "human"})

    def _defaults(self) -> dict[str, Any]:
        """Return the values for agents that do not have their own."""
        table = self._document.get("defaults")
        if not isinstance(table, dict):
            return {}
        return self._member_values(table, DEFAULT_KEYS, ("defaults",), elsewhere="belongs to each [[member]]")

    def _member_values(
        self,
        table: Mapping[str, Any],
        keys: Mapping[str, Kind],
        path: Path,
        elsewhere: str = "is only for members with an agent or a command",
    ) -> dict[str, Any]:
        values = self.values(table, keys, path, others=AGENT_KEYS, elsewhere=elsewhere)
        self._check_timeouts(values, path)
        if "budget" in values:
            values["budget"] = self._budget(values["budget"], (*path, "budget"))
        return values

    def _checks(self) -> Iterator[Check]:
        tables = self._document.get("check", [])
        for index, table in enumerate(tables if isinstance(tables, list) else []):
            path: Path = ("check", index)
            if not isinstance(table, dict):
                self.problem(path, "must be a table [[check]]")
                continue
            values = self.values(table, CHECK_KEYS, path)
            if "command" not in table:
                self.problem(path, 'has no command. Write, for example, command = ["pytest", "-q"]')
            command = values.get("command", ())
            name = usual_name(command) or f"check {index + 1}"
            if "most_returns" in values and values.get("on_red") != "return":
                self.problem((*path, "most_returns"), 'has an effect only with on_red = "return"')
            yield Check(**{"name": name, "command": command, **values})

    def _check_people(self, team: Team) -> None:
        if not team.agents:
            self.problem((), 'the team has no agent. Add a [[member]] with agent = "claude"')
        if not team.people:
            self.problem((), 'the team has no person. Add a [[member]] with only name = "you"')

    def _check_timeouts(self, values: Mapping[str, Any], path: Path) -> None:
        idle, total = values.get("idle_timeout"), values.get("total_timeout")
        if idle is not None and total is not None and total < idle:
            self.problem(
                (*path, "total_timeout"),
                f"{total:g} is less than the idle_timeout of {idle:g}, which would have no effect. Raise it, or remove "
                "idle_timeout",
            )

    def _check_stand_ins(self, team: Team) -> None:
        people, agents = {person.name for person in team.people}, {agent.name: agent for agent in team.agents}
        for index, member in enumerate(team.members):
            path: Path = ("member", index, "stand_in")
            if member.stand_in_at is not None and not member.stand_in:
                text = 'needs stand_in, for example stand_in = ["codex"]'
                self.problem(("member", index, "stand_in_at"), text)
            for by in member.stand_in:
                if by in people or by == member.name:
                    who = "itself" if by == member.name else f"{by}, who is a person"
                    self.problem(path, f"names {who}. Name another agent of the team, or an agent type such as codex")
                elif (other := agents.get(by)) and (why := why_not(member, other)):
                    self.problem(path, why)

    def _check_summarizer(self, team: Team) -> None:
        path: Path = ("summaries", "summarizer")
        name, agents = team.summaries.summarizer, {agent.name: agent for agent in team.agents}
        if name and name not in agents:
            self._check_reference(path, name, list(agents))
        elif name and agents[name].visibility != "all":
            self.problem(path, f'{shown(name)} has visibility = "addressed", so it may not see what it would sum up')
        elif team.summaries.after_bytes is not None and all(agent.visibility != "all" for agent in team.agents):
            text = 'nobody can write summaries: each agent has visibility = "addressed"'
            self.problem(("summaries", "after_bytes"), text)

    def _check_names(self, team: Team) -> None:
        owners: dict[str, tuple[str | int, str]] = {}
        for index, member in enumerate(team.members):
            path: Path = ("member", index, "name")
            if not all(map(_may_be_in_a_name, member.name)) or normalized(member.name) in ("", EVERYONE):
                self.problem(path, f"{shown(member.name)} cannot be a name in [NEXT: …]")
            elif member.name != member.name.strip():
                self.problem(path, f"{shown(member.name)} starts or ends with white space")
            self._check_is_free(path, member.name, owners)
            for name in member.may_address or ():
                self._check_reference(("member", index, "may_address"), name, [m.name for m in team.members])
        for index, member in enumerate(team.members):
            self._check_is_free(("member", index, "display_name"), member.display_name, owners)
        if "lead" in self._document and isinstance(team.lead, str):
            self._check_lead(team)

    def _check_lead(self, team: Team) -> None:
        """Report a lead that is neither an agent nor several as in [NEXT: …]."""
        agents, lead = [agent.name for agent in team.agents], read_lead(team.lead)
        if lead.best_of is not None or len(lead.found) > 1 or not lead.next:
            such = "an agent, or several as in [NEXT: …], such as “max & sarah, carol”"
            self.problem(("lead",), f"must be {such}, not {shown(team.lead)}")
        elif lead.is_blind and not any(len(group) > 1 for group in lead.next[:-1]):
            self.problem(
                ("lead",), "with “blind” somebody must answer after several, as in “max & sarah, carol; blind”"
            )
        else:
            for name in lead.addressees:
                self._check_reference(("lead",), name, agents)

    def _check_names_of_checks(self, team: Team) -> None:
        seen: set[str] = set()
        for index, check in enumerate(team.checks):
            if normalized(check.name) in seen:
                self.problem(
                    ("check", index), f"another check is called {shown(check.name)}, too. Give it another name"
                )
            seen.add(normalized(check.name))
        for index, member in enumerate(team.members if team.has_own_voice else ()):
            for key in ("name", "display_name"):
                if normalized(getattr(member, key)) == BULLPEN:
                    who = shown(getattr(member, key))
                    text = f"{who} is who speaks for checks and reviews. Call this member something else"
                    self.problem(("member", index, key), text)

    def _check_is_free(self, path: Path, name: str, owners: dict[str, tuple[str | int, str]]) -> None:
        """Give a name to a member, unless it would be ambiguous in [NEXT: …]. A name of only punctuation is ignored."""
        key, member = normalized(name), path[1]
        owner, spelling = owners.setdefault(key, (member, name))
        if key and owner != member:
            self.problem(path, f"{shown(name)} and {shown(spelling)} would be the same name in [NEXT: …]")
        elif key == EVERYONE and path[-1] == "display_name":
            self.problem(path, f"{shown(name)} means everyone in [DROP: …]")

    def _check_reference(self, path: Path, name: str, known: list[str]) -> None:
        if name not in known:
            kind = "agent" if path[0] in ("lead", "summaries") else "member"
            self.problem(path, f"there is no such {kind}: {shown(name)}.{suggestion(name, known)}")


def _left_open(defaults: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults for a member with these values: a default window would win over its window_bytes."""
    return {key: value for key, value in defaults.items() if not (key == "window" and "window_bytes" in own)}


def usual_name(command: Sequence[str]) -> str:
    """Return what a check is called that has no name: "pytest" for pytest -q tests, "npm test" for npm test."""
    program, *rest = command or ("",)
    subcommands = itertools.takewhile(_PLAIN_WORD.fullmatch, rest[1:] if rest[:1] == ["-m"] else rest)
    words = [program.rpartition("/")[2], *subcommands]
    return check_name(" ".join(words[:MOST_WORDS]))[:LONGEST_CHECK_NAME].strip()


def _may_be_in_a_name(character: str) -> bool:
    return character not in NOT_IN_NAMES and unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
