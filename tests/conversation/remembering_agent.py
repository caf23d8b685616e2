"""One member of a team that remembers: the scripted agent with the script of its turn, in one process.

Usage: python remembering_agent.py FOLDER CLI [anything]. FOLDER may have script-1 and so on, and script for all turns;
without one the agent says its name and the number of its turn. A file turn-N is made when its Nth turn begins.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib is slow to import
sys.path.insert(0, f"{HERE}/../../src")

from bullpen.testing.agent.__main__ import main  # noqa: E402
from bullpen.testing.agent.quick_json import to_json  # noqa: E402


def _number(folder: str) -> int:
    for number in range(1, sys.maxsize):
        try:
            os.close(os.open(f"{folder}/turn-{number}", os.O_CREAT | os.O_EXCL))
            return number
        except FileExistsError:
            continue
    raise AssertionError


def _script(folder: str, number: int) -> str:
    for name in (f"script-{number}", "script"):
        if os.access(f"{folder}/{name}", os.R_OK):
            return f"{folder}/{name}"
    name = folder.rpartition("/")[2]
    return to_json([{"say": f"{name}:{number} says so."}])


folder_, cli, *arguments = sys.argv[1:]
if "--version" in arguments:
    os._exit(main(["--as", cli, "--version"]))
os._exit(main(["--as", cli, "--script", _script(folder_, _number(folder_)), *arguments]))
