"""One program that misbehaves, in every protocol that bullpen speaks with agents that ask.

Each step is a list: ["ask", number, command], ["flood", count], ["wait", number] until that question is answered and
then, if the answer is yes, to make the file `ran-NUMBER`; ["ask for ever"], ["huge", megabytes], ["garbage"],
["deaf"] closes its input, ["end"], ["stay"] for ever, whatever signal it gets.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from bullpen.agents import AgentSpec, agent_spec
from bullpen.agents.registry import spec_for

PROGRAM = r"""
import json, os, pathlib, signal, sys, time
protocol, script = sys.argv[1], json.loads(sys.argv[2])
answers, prompt = {}, [None]
def say(record):
    print(json.dumps(record), flush=True)
class Claude:
    def begin(self):
        hear()
    def ask(self, number, command):
        wanted = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": command}, "tool_use_id": "t"}
        say({"type": "control_request", "request_id": str(number), "request": wanted})
    def end(self):
        say({"type": "result", "subtype": "success", "is_error": False, "result": "fine"})
    def heard(self, record):
        if record.get("type") == "control_response":
            response = record["response"]
            yield response["request_id"], (response.get("response") or {}).get("behavior") == "allow"
class Codex:
    replies = {"initialize": {}, "turn/start": {"turn": {"id": "u"}}, "thread/start": {"thread": {"id": "t"},
        "approvalPolicy": "untrusted", "approvalsReviewer": "user", "sandbox": {"type": "readOnly"}}}
    def begin(self):
        while prompt[0] is None:
            hear()
    def ask(self, number, command):
        params = {"threadId": "t", "turnId": "u", "itemId": f"i{number}", "command": command, "cwd": "/"}
        say({"method": "item/commandExecution/requestApproval", "id": number, "params": params})
    def end(self):
        item = {"type": "agentMessage", "id": "m", "text": "fine"}
        say({"method": "item/completed", "params": {"threadId": "t", "turnId": "u", "item": item}})
        say({"method": "turn/completed", "params": {"threadId": "t", "turn": {"id": "u", "status": "completed"}}})
    def heard(self, record):
        method, number = record.get("method"), record.get("id")
        if method is None and "result" in record:
            yield str(number), record["result"].get("decision") == "accept"
        elif number is not None:
            say({"id": number, "result": self.replies.get(method, {})})
            prompt[0] = prompt[0] or (number if method == "turn/start" else None)
class Acp:
    replies = {"initialize": {"protocolVersion": 1}, "session/new": {"sessionId": "s"}}
    def begin(self):
        while prompt[0] is None:
            hear()
    def ask(self, number, command):
        options = [{"optionId": name, "kind": name} for name in ("allow_always", "allow_once", "reject_once")]
        call = {"toolCallId": f"c{number}", "kind": "execute", "title": "x", "rawInput": {"command": command}}
        params = {"sessionId": "s", "toolCall": call, "options": options}
        say({"jsonrpc": "2.0", "id": number, "method": "session/request_permission", "params": params})
    def end(self):
        words = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "fine"}}
        say({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": words}})
        say({"jsonrpc": "2.0", "id": prompt[0], "result": {"stopReason": "end_turn"}})
    def heard(self, record):
        method, number = record.get("method"), record.get("id")
        if method is None and "result" in record:
            yield str(number), record["result"]["outcome"].get("optionId") == "allow_once"
        elif method == "session/prompt" and prompt[0] is not None:
            # Why something was refused: it has nothing to add.
            say({"jsonrpc": "2.0", "id": number, "result": {"stopReason": "end_turn"}})
        elif method == "session/prompt":
            prompt[0] = number
        elif number is not None:
            say({"jsonrpc": "2.0", "id": number, "result": self.replies.get(method, {})})
def hear():
    line = sys.stdin.readline()
    if not line:
        time.sleep(600 if "stay" in sys.argv[2] else 0)
        sys.exit(0)
    for number, is_yes in speaks.heard(json.loads(line)):
        with open("answers", "a") as file:
            file.write(f"{number} {is_yes}\n")
        answers[number] = is_yes
speaks = {"claude": Claude, "codex": Codex, "acp": Acp}[protocol]()
speaks.begin()
for step, *given in script:
    if step == "ask":
        speaks.ask(*given)
    elif step == "flood":
        for number in range(given[0]):
            speaks.ask(number, "x")
    elif step == "wait":
        while str(given[0]) not in answers:
            hear()
        if answers.pop(str(given[0])):
            pathlib.Path(f"ran-{given[0]}").touch()
    elif step == "ask for ever":
        for number in range(10**9):
            speaks.ask(number, "x")
            while str(number) not in answers:
                hear()
    elif step == "huge":
        speaks.ask(1, "x" * (given[0] * 1024 * 1024))
    elif step == "garbage":
        os.write(1, b"\xff\xfe\x00 garbage \x1b[31m\n{\n[]\nnull\n17\n\"words\"\n{}\n" + os.urandom(3000) + b"\n")
        for record in ({"id": 999, "result": 5}, {"id": None}, {"method": 1}, {"method": "x", "params": []},
                       {"type": ["control_request"]}, {"type": "control_request", "request": None}, {"id": {}},
                       {"method": "session/request_permission", "id": 5}, {"type": "control_cancel_request"},
                       {"jsonrpc": "2.0", "id": 77, "error": "x"}, {"method": "session/update", "params": {}}):
            say(record)
    elif step == "deaf":
        os.close(0)
    elif step == "end":
        speaks.end()
    elif step == "stay":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
while True:
    hear()
"""


def _claude(command: tuple[str, ...]) -> AgentSpec:
    spec = agent_spec("claude").with_permissions("ask")
    spec = replace(spec, command=command, permissions={"ask": ()}, asking=None)
    return replace(spec, asking=spec)


def _codex(command: tuple[str, ...]) -> AgentSpec:
    spec = agent_spec("codex")
    return replace(spec, asking=replace(spec.with_permissions("ask"), command=command, permissions={"ask": ()}))


PROTOCOLS: dict[str, Callable[[tuple[str, ...]], AgentSpec]] = {
    "claude": _claude,
    "codex": _codex,
    "acp": lambda command: spec_for("acp", command),
}


def misbehaving(protocol: str, *steps: list[Any]) -> AgentSpec:
    """Return an agent that speaks a protocol, and does that."""
    return PROTOCOLS[protocol]((sys.executable, "-c", PROGRAM, protocol, json.dumps(steps)))
