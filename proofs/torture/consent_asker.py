"""A program that asks as a CLI does, in one of three protocols, and writes down what it ran: the evidence.

`python consent_asker.py LOG SEED PROTOCOL`. It imports no product. It asks for commands and edits, uses ids again,
takes questions back and asks others under the same id in the same write, and does what it is allowed: nothing else.
"""

import json
import os
import random
import sys
from collections.abc import Mapping
from typing import Any

STEPS = 25
MODES = ("default", "bullpen", "ask", "https://agentclientprotocol.com/protocol/session-modes#agent")
CODEX_REPLIES: dict[str, Any] = {
    "thread/start": {
        "thread": {"id": "t"},
        "approvalPolicy": "untrusted",
        "approvalsReviewer": "user",
        "sandbox": {"type": "readOnly"},
    },
    "turn/start": {"turn": {"id": "u"}},
}
ACP_REPLIES: dict[str, Any] = {
    "initialize": {"protocolVersion": 1},
    "session/new": {
        "sessionId": "s",
        "modes": {"currentModeId": "x", "availableModes": [{"id": mode} for mode in MODES]},
    },
}


class Protocol:
    """How one CLI asks, and hears."""

    replies: Mapping[str, Any] = {}
    """What it answers to requests of the client."""

    replies_to_what_is_taken_back = False

    def __init__(self) -> None:
        self.prompt: Any = None

    def heard(self, record: dict[str, Any]) -> tuple[str, bool, dict[str, Any]] | None:
        """Return which question is answered, whether with a yes, and what is to be done instead."""
        raise NotImplementedError

    def ask(self, number: str, command: str, path: str, content: str, folder: str) -> list[dict[str, Any]]:
        raise NotImplementedError

    def take_back(self, number: str) -> dict[str, Any]:
        raise NotImplementedError

    def end(self) -> list[dict[str, Any]]:
        raise NotImplementedError


class Claude(Protocol):
    def heard(self, record: dict[str, Any]) -> tuple[str, bool, dict[str, Any]] | None:
        if record.get("type") == "user":
            self.prompt = True
        if record.get("type") != "control_response":
            return None
        response = record["response"].get("response") or {}
        return record["response"]["request_id"], response.get("behavior") == "allow", response.get("updatedInput") or {}

    def ask(self, number: str, command: str, path: str, content: str, folder: str) -> list[dict[str, Any]]:
        del folder
        tool = "Bash" if command else "Write"
        given = {"command": command} if command else {"file_path": path, "content": content}
        request = {"subtype": "can_use_tool", "tool_name": tool, "input": given, "tool_use_id": f"t{number}"}
        return [{"type": "control_request", "request_id": number, "request": request}]

    def take_back(self, number: str) -> dict[str, Any]:
        return {"type": "control_cancel_request", "request_id": number}

    def end(self) -> list[dict[str, Any]]:
        return [{"type": "result", "subtype": "success", "is_error": False, "result": f"fine {random.random()}"}]


class Codex(Protocol):
    replies = CODEX_REPLIES

    def heard(self, record: dict[str, Any]) -> tuple[str, bool, dict[str, Any]] | None:
        method, number = record.get("method"), record.get("id")
        if method is None:
            return str(number), record.get("result", {}).get("decision") == "accept", {}
        if number is not None:
            say({"id": number, "result": self.replies.get(method, {})})
        self.prompt = self.prompt or method == "turn/start"
        return None

    def ask(self, number: str, command: str, path: str, content: str, folder: str) -> list[dict[str, Any]]:
        about = {"threadId": "t", "turnId": "u", "itemId": f"i{number}"}
        if command:
            params = {**about, "command": command, "cwd": folder}
            return [{"method": "item/commandExecution/requestApproval", "id": number, "params": params}]
        change = {"path": path, "kind": {"type": "add"}, "diff": content}
        item = {"type": "fileChange", "id": f"i{number}", "changes": [change], "status": "inProgress"}
        return [
            {"method": "item/started", "params": {"threadId": "t", "turnId": "u", "item": item}},
            {"method": "item/fileChange/requestApproval", "id": number, "params": about},
        ]

    def take_back(self, number: str) -> dict[str, Any]:
        return {"method": "serverRequest/resolved", "params": {"threadId": "t", "requestId": number}}

    def end(self) -> list[dict[str, Any]]:
        item = {"type": "agentMessage", "id": "m", "text": f"fine {random.random()}"}
        turn = {"id": "u", "status": "completed"}
        return [
            {"method": "item/completed", "params": {"threadId": "t", "turnId": "u", "item": item}},
            {"method": "turn/completed", "params": {"threadId": "t", "turn": turn}},
        ]


class Acp(Protocol):
    replies = ACP_REPLIES
    KINDS = ("allow_always", "allow_once", "reject_once")
    replies_to_what_is_taken_back = True

    def heard(self, record: dict[str, Any]) -> tuple[str, bool, dict[str, Any]] | None:
        method, number = record.get("method"), record.get("id")
        if method is None:
            return str(number), record.get("result", {}).get("outcome", {}).get("optionId") == "allow_once", {}
        if method == "session/prompt" and self.prompt is None:
            self.prompt = number
        elif method == "session/prompt":
            # Why something was refused: it has nothing to add.
            say({"jsonrpc": "2.0", "id": number, "result": {"stopReason": "end_turn"}})
        elif number is not None:
            say({"jsonrpc": "2.0", "id": number, "result": self.replies.get(method, {})})
        return None

    def ask(self, number: str, command: str, path: str, content: str, folder: str) -> list[dict[str, Any]]:
        call: dict[str, Any] = {"toolCallId": f"c{number}", "kind": "execute" if command else "edit", "title": "x"}
        if command:
            call["rawInput"] = {"command": command, "cwd": folder}
        else:
            call["content"] = [{"type": "diff", "path": path, "oldText": "", "newText": content}]
        options = [{"optionId": kind, "kind": kind, "name": kind} for kind in self.KINDS]
        params = {"sessionId": "s", "toolCall": call, "options": options}
        return [{"jsonrpc": "2.0", "id": number, "method": "session/request_permission", "params": params}]

    def take_back(self, number: str) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": number}}

    def end(self) -> list[dict[str, Any]]:
        words = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": f"{random.random()}"}}
        return [
            {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": words}},
            {"jsonrpc": "2.0", "id": self.prompt, "result": {"stopReason": "end_turn"}},
        ]


class Asker:
    """One turn."""

    def __init__(self, log: str, seed: str, protocol: str) -> None:
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._turn = os.environ["TORTURE_TURN"]
        self._random = random.Random(f"{seed} {self._turn}")
        self._speaks = {"claude": Claude, "codex": Codex}.get(protocol, Acp)()
        self._wants: list[list[str]] = json.loads(os.environ["CONSENT_WANTS"])
        self._late: list[list[str]] = json.loads(os.environ["CONSENT_LATE"])
        """What is not answered at once."""
        self._taken_back: set[str] = set()
        self._owed: list[str] = []
        """Ids to which an answer comes that is not to the question that has it now."""
        self._open: dict[str, list[str]] = {}
        self._all: list[list[str]] = []

    def run(self) -> None:
        while self._speaks.prompt is None:
            self._hear()
        for _ in range(STEPS):
            self._ask()
            while self._open and self._random.random() < 0.8:
                self._hear()
        while self._open:
            self._hear()
        say(*self._speaks.end())
        while True:
            self._hear()

    def _ask(self) -> None:
        """Ask for something, often once more for the same; sometimes take it back and use its id for something else."""
        number = self._random.choice([str(one) for one in range(101, 107)])
        if number in self._open:
            # Its answer may be on its way, so the id is not used again.
            del self._open[number]
            self._taken_back.add(number)
            say(self._speaks.take_back(number))
        if number in self._taken_back:
            number = str(1000 + len(self._all))
        wanted = self._random.choice(self._all[-4:] if self._all and self._random.random() < 0.4 else self._wants)
        self._all.append(wanted)
        self._open[number] = wanted
        self._note("asked", *wanted)
        records = self._speaks.ask(number, *wanted)
        if self._random.random() < 0.1:
            # Before it, something else with the same id, which is taken back in the same write: nobody can answer it.
            other = self._random.choice(self._late)
            self._note("asked", *other)
            records = [*self._speaks.ask(number, *other), self._speaks.take_back(number), *records]
            self._owed += [number] if self._speaks.replies_to_what_is_taken_back else []
        say(*records)

    def _hear(self) -> None:
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        answer = self._speaks.heard(json.loads(line))
        if answer is None or answer[0] not in self._open:
            return
        number, is_yes, instead = answer
        if number in self._owed:
            self._owed.remove(number)
            return
        command, path, content, folder = self._open.pop(number)
        if is_yes:
            command = instead.get("command", command)
            self._note("ran", command, instead.get("file_path", path), instead.get("content", content), folder)

    def _note(self, *what: str) -> None:
        os.write(self._log, json.dumps([self._turn, *what]).encode() + b"\n")


def say(*records: dict[str, Any]) -> None:
    os.write(1, b"".join(json.dumps(record).encode() + b"\n" for record in records))


if __name__ == "__main__":
    Asker(*sys.argv[1:]).run()
