"""The story that `bullpen demo` tells: a tea timer is designed, built, reviewed and fixed. Only data."""

from typing import Any

Step = dict[str, Any]

YOU = "you"

TEAM = """\
# The team of `bullpen demo`. There its agents follow a script; `bullpen chat` would run the real ones.

name = "tea"

[[member]]
name = "you"
role = "forgets the tea"

[[member]]
name = "ada"
role = "designs"
agent = "claude"
system_instruction = "Design it in a few lines. Change no file. Hand over to ben."

[[member]]
name = "ben"
role = "builds"
agent = "codex"
permissions = "edit"
window = 3
system_instruction = "Build what ada designed, and nothing else. Then let ada and mei review it."

[[member]]
name = "mei"
role = "tries to break it"
agent = "gemini"
system_instruction = "Try to break what ben built. Say what you tried."
"""

FIRST_WORDS = """\
I always forget my tea. Please build me a timer! [NEXT: ada]
[TEAM_TASK] A tea timer in one small file: tea.py"""

FIRST_TRY = '''\
"""A tea timer: python3 tea.py 180"""

import sys
import time

for left in range(int(sys.argv[1]), 0, -1):
    print(f"{left:>4} s", end="\\r", flush=True)
    time.sleep(1)
print("Your tea is ready. 🍵")
'''

FIXED = '''\
"""A tea timer: python3 tea.py 180"""

import sys
import time

try:
    seconds = int(sys.argv[1])
except (IndexError, ValueError):
    sys.exit("For how many seconds? For example: python3 tea.py 180")
for left in range(seconds, 0, -1):
    print(f"{left:>4} s", end="\\r", flush=True)
    time.sleep(1)
print("Your tea is ready. 🍵")
'''


def _says(text: str, *, delay: float = 0.025) -> Step:
    return {"say": text, "chunk": 2, "delay": delay}


SCRIPTS: dict[str, tuple[list[Step], ...]] = {
    "ada": (
        [
            {"sleep": 0.6},
            {"think": "One file, no packages. What should it do when the time is over? Say so, nothing more."},
            {"sleep": 0.9},
            _says(
                "A small thing, so let us keep it small:\n\n"
                "- `python3 tea.py 180` counts down from 180 seconds\n"
                "- it shows what is left, on one line\n"
                "- at the end it says that the tea is ready\n\n"
                "Ben, please build it. [NEXT: ben]"
            ),
            {"usage": {"input": 412, "output": 96}, "cost": 0.0031},
        ],
        [
            {"sleep": 0.5},
            {"tool": {"name": "Read", "input": {"file_path": "tea.py"}, "output": FIRST_TRY, "seconds": 0.5}},
            _says("It does what I had in mind, and in nine lines. Nothing to add."),
            {"usage": {"input": 688, "output": 41}, "cost": 0.0029},
        ],
    ),
    "ben": (
        [
            {"sleep": 0.5},
            {"todo": [{"text": "write tea.py", "completed": False}, {"text": "try it", "completed": False}]},
            {"sleep": 0.7},
            {"write_file": {"path": "tea.py", "text": FIRST_TRY}},
            {"tool": {"name": "Write", "input": {"file_path": "tea.py"}, "seconds": 0.7}},
            {
                "tool": {
                    "name": "Bash",
                    "input": {"command": "python3 tea.py 2"},
                    "output": "Your tea is ready. 🍵",
                    "seconds": 1.6,
                }
            },
            {"todo": [{"text": "write tea.py", "completed": True}, {"text": "try it", "completed": True}]},
            _says("It counts down and calls you. Have a look, both of you. [NEXT: ada & mei]", delay=0.015),
            {"usage": {"input": 530, "output": 120}},
        ],
        [
            {"sleep": 0.5},
            {"write_file": {"path": "tea.py", "text": FIXED}},
            {"tool": {"name": "Edit", "input": {"file_path": "tea.py"}, "seconds": 0.8}},
            {
                "tool": {
                    "name": "Bash",
                    "input": {"command": "python3 tea.py soon"},
                    "output": "For how many seconds? For example: python3 tea.py 180",
                    "failed": True,
                    "seconds": 0.7,
                }
            },
            _says("Fixed: it asks instead of crashing. Enjoy your tea! [NEXT: you]", delay=0.015),
            {"usage": {"input": 611, "output": 88}},
        ],
    ),
    "mei": (
        [
            # Ada answers at the same time, and first.
            {"sleep": 0.5, "keeps_order": True},
            {
                "tool": {
                    "name": "Bash",
                    "input": {"command": "python3 tea.py soon"},
                    "output": "ValueError: invalid literal for int() with base 10: 'soon'",
                    "failed": True,
                    "seconds": 0.8,
                }
            },
            _says(
                "I could break it: `python3 tea.py soon` ends in a traceback. It should say what it needs instead. "
                "Over to ben."
            ),
            {"usage": {"input": 702, "output": 64}},
        ],
    ),
}
"""For each member what it does in its first turn, its second, and so on."""

EXPLAINED_TURN = "5"
