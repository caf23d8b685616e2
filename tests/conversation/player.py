"""One member of a scripted team: keeps its prompt, then plays the script of its turn; the last one is played again.

Usage: python player.py FOLDER CLI [anything]. The folder holds scripts.json; prompts go there as prompt-1 and so on.
"""

import json
import os
import sys
from pathlib import Path

folder, cli, *_ = sys.argv[1:]
scripts = json.loads(Path(folder, "scripts.json").read_text(encoding="utf-8"))
for number in range(1, sys.maxsize):
    try:
        prompt = os.open(Path(folder, f"prompt-{number}"), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        break
    except FileExistsError:
        continue
while piece := os.read(0, 65536) if cli != "claude" else sys.stdin.buffer.readline():
    os.write(prompt, piece)
    if cli == "claude":
        break
os.lseek(prompt, 0, os.SEEK_SET)
os.dup2(prompt, 0)
script = Path(folder, f"script-{number}")
script.write_text(json.dumps(scripts[min(number, len(scripts)) - 1]), encoding="utf-8")
agent = [sys.executable, "-m", "bullpen.testing.agent", "--as", cli, "--script", str(script), *sys.argv[3:]]
os.execv(sys.executable, agent)
