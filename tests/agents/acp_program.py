"""A program that speaks the Agent Client Protocol, rightly or wrongly: it does what its script says.

Each step is a list: ["say", text], ["ask", number, command], ["edit", number, path], ["wait", number] until that
question is answered, ["allowed", number, file] makes a file if the answer was yes, ["raw", message], ["end", reason],
["error", code, text], ["prompt"] waits for the next prompt, ["stay"] for ever. What it hears goes to the file `heard`.
"""

import json
import sys
from pathlib import Path
from typing import Any

from bullpen.agents import AgentSpec
from bullpen.agents.registry import spec_for

PROGRAM = """
import json, pathlib, sys, time
script, heard, answers, prompt = json.loads(sys.argv[1]), pathlib.Path("heard"), {}, None
def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def update(kind, **told):
    send(method="session/update", params={"sessionId": "s1", "update": {"sessionUpdate": kind, **told}})
def hear():
    global prompt
    line = sys.stdin.readline()
    if not line:
        time.sleep(600)
    with heard.open("a") as file:
        file.write(line)
    message = json.loads(line)
    method, number = message.get("method"), message.get("id")
    if method == "initialize":
        send(id=number, result={"protocolVersion": 1, "agentInfo": {"name": "x", "version": "1.2.3"}})
    elif method == "session/new":
        modes = {"currentModeId": "auto", "availableModes": [{"id": "auto"}, {"id": "default"}]}
        send(id=number, result={"sessionId": "s1", "modes": modes})
    elif method == "session/set_mode":
        send(id=number, result={})
    elif method == "session/prompt":
        prompt = number
    elif method is None:
        answers[number] = message
def until_prompted():
    while prompt is None:
        hear()
options = [{"optionId": "A", "kind": "allow_always"}, {"optionId": "y", "kind": "allow_once"},
           {"optionId": "n", "kind": "reject_once"}]
def ask(number, **told):
    params = {"sessionId": "s1", "toolCall": {"toolCallId": f"c{number}", **told}, "options": options}
    send(id=number, method="session/request_permission", params=params)
until_prompted()
for step, *given in script:
    if step == "say":
        update("agent_message_chunk", content={"type": "text", "text": given[0]})
    elif step == "ask":
        ask(given[0], kind="execute", title="a command", rawInput={"command": given[1]})
    elif step == "edit":
        ask(given[0], kind="edit", title="an edit", content=[{"type": "diff", "path": given[1], "newText": "x"}])
    elif step == "wait":
        while given[0] not in answers:
            hear()
    elif step == "allowed":
        if answers[given[0]]["result"]["outcome"].get("optionId") == "y":
            pathlib.Path(given[1]).write_text("done")
    elif step == "raw":
        print(json.dumps(given[0]), flush=True)
    elif step == "end":
        number, prompt = prompt, None
        send(id=number, result={"stopReason": given[0]})
    elif step == "error":
        send(id=prompt, error={"code": given[0], "message": given[1]})
    elif step == "prompt":
        until_prompted()
    elif step == "stay":
        while True:
            hear()
while True:
    hear()
"""


def acp_program(*steps: list[Any]) -> AgentSpec:
    """Return an agent with that script."""
    return spec_for("acp", [sys.executable, "-c", PROGRAM, json.dumps(steps)])


def heard_in(folder: Path) -> list[dict[str, Any]]:
    """Return all that the program was told."""
    return [json.loads(line) for line in (folder / "heard").read_text().splitlines()]
