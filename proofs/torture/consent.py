"""Hostile agents, folders, reviewers and commands against a person's word; consent_trials.py does it."""

import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from proofs.torture.consent_mistakes import MISTAKES
from proofs.torture.kill_nine import tortured
from proofs.torture.outcome import Outcome, Size, Torture

PARTS: dict[Size, dict[str, int]] = {
    "small": {"questions": 100, "folders": 10, "rules": 20, "verdicts": 100, "within": 1},
    "full": {"questions": 10_000, "folders": 1000, "rules": 5000, "verdicts": 10_000, "within": 1},
}
WITH_MISTAKE = {"questions": 250, "folders": 5, "rules": 50, "verdicts": 100}
MOST_RUNS = 3
AT_ONCE = 2


def run(size: Size, seed: int) -> Outcome:
    """Do all parts, the questions in several teams at the same time if there are many."""
    count = AT_ONCE if size == "full" else 1
    wanted = [("questions", PARTS[size]["questions"] // count, seed * count + part) for part in range(count)]
    wanted += [(part, most, seed) for part, most in PARTS[size].items() if part != "questions"]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        found = list(threads.map(lambda one: found_by(*one), wanted))
    counts = sum((Counter(part["counts"]) for part in found), Counter[str]())
    failures = tuple(problem for part in found for problem in part["problems"])
    questions = counts.pop("questions", 0)
    return Outcome(tried=questions, unit="questions", failures=failures, figures=dict(sorted(counts.items())))


def run_with_fault(seed: int) -> Outcome:
    """Do it with each mistake."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        found = list(threads.map(lambda name: seen(name, seed), MISTAKES))
    missed = [name for name, problem in zip(MISTAKES, found, strict=True) if not problem]
    failures = () if missed else (f"all {len(MISTAKES)} mistakes were found; {found[0]}",)
    return Outcome(tried=len(MISTAKES), unit="mistakes", failures=failures or tuple(f"missed: {one}" for one in missed))


def seen(mistake: str, seed: int) -> str:
    """Return what a mistake was seen as by the part that must find it; nothing if it was not, or as something else."""
    *_, part, pattern = MISTAKES[mistake]
    for again in range(MOST_RUNS):
        problems = found_by(part, WITH_MISTAKE[part], seed + again, mistake)["problems"]
        if problem := next((one for one in problems if re.search(pattern, one, re.DOTALL)), ""):
            return str(problem)
    return ""


def found_by(part: str, count: int, seed: int, mistake: str = "") -> dict[str, Any]:
    """Return what one part found, with a mistake or without one."""
    return tortured("consent_trials", part, str(count), str(seed), mistake, in_memory=True)


TORTURE = Torture(
    name="nothing without a person's word",
    does=(
        "Agents in the dialects of Claude Code, Codex, Gemini, Qwen Code, OpenCode, Copilot, Vibe and plain ACP ask "
        "for commands and edits in hostile folders: attacks on rules, commands that look like allowed ones, with the "
        "end behind hundreds of blanks, through links, under ids that were used before, some taken back in the same "
        "write. A person answers at random, with every scope, other commands, and cancels. Folders with settings that "
        "make programs run are edited in every way; every rule of the docs meets every attack of a corpus; reviewers "
        "refuse in English and Chinese in words that mention approval; every command of bullpen is run from within "
        "an agent."
    ),
    promise=(
        "what ran is, byte for byte, what was shown and agreed to, once for each yes; every yes is one of a person, "
        "of a rule that covers it, or held for exactly the same; what is denied is asked of nobody; no short form "
        "hides the end of a command; no file that makes programs run is written unasked; no refusal approves; and no "
        "command about conversations works within an agent."
    ),
    run=run,
    fault=f"{len(MISTAKES)} mistakes, one after the other: " + "; ".join(MISTAKES) + ". Each must be found.",
    run_with_fault=run_with_fault,
    seen_as=f"all {len(MISTAKES)} mistakes were found",
    order=8,
)
