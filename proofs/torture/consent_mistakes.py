"""One-line mistakes about consent, by which part each must be found, and how it is seen."""

from pathlib import Path

from proofs.torture.planting import plant_in

RULES, APPROVALS = "bullpen.team.approval_rules", "bullpen.conversation.approvals"
SUBJECT = "    return asked.kind, asked.tool, asked.folder, asked.command, asked.paths, asked.diff, details\n"
WITHOUT_A_YES, NOBODY_GAVE, HIDDEN = (
    "ran without a yes to exactly that",
    "has a yes that nobody gave",
    "hides its end",
)

MISTAKES = {
    "a held yes is for any command": (
        RULES,
        SUBJECT,
        SUBJECT.replace("asked.command, ", ""),
        "questions",
        NOBODY_GAVE,
    ),
    "a held yes is for any contents of a file": (
        RULES,
        SUBJECT,
        SUBJECT.replace("asked.diff, ", ""),
        "questions",
        NOBODY_GAVE,
    ),
    "a held yes is for every folder": (
        RULES,
        SUBJECT,
        SUBJECT.replace("asked.folder, ", ""),
        "questions",
        NOBODY_GAVE,
    ),
    "a yes for once is held": (
        APPROVALS,
        '        if given.scope != "once" and self._held is not None:\n',
        "        if self._held is not None:\n",
        "questions",
        NOBODY_GAVE,
    ),
    "a yes to one member is one to all": (
        APPROVALS,
        "                record.member == member\n                and ",
        "                ",
        "questions",
        NOBODY_GAVE,
    ),
    "people are asked about what is denied": (
        APPROVALS,
        "        if rule := denying(member.deny, asked):\n",
        "        if (rule := denying(member.deny, asked)) and False:\n",
        "questions",
        "is denied, and has a yes",
    ),
    "a denied program may be run by its path": (
        RULES,
        '_begins([word.rpartition("/")[2]], wanted[0])',
        "_begins([word], wanted[0])",
        "questions",
        "is denied, and has a yes",
    ),
    "options that run or write are not looked at": (
        RULES,
        "    return bool(count) and not is_risky(seen, count)\n",
        "    return bool(count)\n",
        "rules",
        "allows 'git diff --output",
    ),
    "what a shell reads is not looked for": (
        RULES,
        "    return words if is_plain else []\n",
        "    return words\n",
        "rules",
        "allows '.*curl",
    ),
    "any shell is a shell": (
        RULES,
        "    return name in SHELLS and folder + separator in SHELL_FOLDERS\n",
        "    return name in SHELLS\n",
        "rules",
        r"allows '\./bash",
    ),
    "a short form is only a beginning": (
        "bullpen.text.asked_words",
        '    return f"{words[: most - end - 1]}…{words[-end:]}"\n',
        '    return f"{words[: most - 1]}…"\n',
        "questions",
        HIDDEN,
    ),
    "text is cut before blanks are joined": (
        "bullpen.text.asked_words",
        "for line in text.splitlines())",
        "for line in text[:most].splitlines())",
        "questions",
        HIDDEN,
    ),
    "a question with the id of another one is that one": (
        "bullpen.agents.dialogue",
        "        chosen = next(one for one in ids if one not in self._used)\n",
        "        chosen = next(ids)\n",
        "questions",
        WITHOUT_A_YES,
    ),
    "the command that was asked for runs instead of the one that was agreed to": (
        "bullpen.agents.claude_questions",
        "        if self.asked[0].can_change and answer.command:\n",
        "        if self.asked[0].can_change and not answer:\n",
        "questions",
        WITHOUT_A_YES,
    ),
    "Codex takes a no for a yes": (
        "bullpen.agents.codex_questions",
        '"no": "decline"',
        '"no": "accept"',
        "questions",
        WITHOUT_A_YES,
    ),
    "agents of the Agent Client Protocol take a no for a yes": (
        "bullpen.agents.acp_driver",
        '        is_yes = answer.verdict == "yes" and not answer.command',
        '        is_yes = answer.verdict != "stop" and not answer.command',
        "questions",
        WITHOUT_A_YES,
    ),
    "every edit is a usual one": (
        "bullpen.agents.acp_driver",
        '        if question.kind == "tool" and question.tool in own:\n',
        '        if question.kind == "edit":\n',
        "folders",
        "unasked",
    ),
    "a verdict counts anywhere": (
        "bullpen.routing.reviews",
        "    return markers.verdicts[-1] if is_alone and",
        "    return markers.verdicts[-1] if True or",
        "verdicts",
        "this approves: .*second thought",
    ),
    "words do not matter beside a marker": (
        "bullpen.routing.reviews",
        "    if any(verdict_in_words(one) not in (None, verdict) for one in readings(text)):",
        '    verdict = "changes"\n    if not text:',
        "verdicts",
        "this approves: .*不批准",
    ),
}
"""By name: the module, what is written there exactly once, what is written instead, the part of this class that must
find it, and what that is seen as."""


def plant(name: str, folder: Path) -> None:
    """Make a mistake in this process, before anything has imported its module; "" makes none."""
    if name:
        module, right, wrong, *_ = MISTAKES[name]
        plant_in(module, right, wrong, folder)
