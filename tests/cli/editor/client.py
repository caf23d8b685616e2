"""A client that speaks lines of JSON with `bullpen acp`, rightly or wrongly, and remembers everything it heard."""

import json
import subprocess
import threading
import time
from contextlib import suppress
from queue import Empty, Queue
from typing import Any

PATIENCE_SECONDS = 60.0
Message = dict[str, Any]


class Editor:
    """One process of `bullpen acp`, and the other end of its pipes."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.heard: list[Message] = []
        self._lines: Queue[bytes] = Queue()
        self._number = 0
        self._unread: list[Message] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, **message: object) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def begin(self, method: str, **params: object) -> int:
        """Send a request; return its number."""
        self._number += 1
        self.send(id=self._number, method=method, params=params)
        return self._number

    def answer_to(self, number: object) -> Message:
        """Wait for the answer to a request."""
        return self.until(lambda message: "method" not in message and message.get("id") == number)

    def ask(self, method: str, **params: object) -> Any:
        """Send a request and return its result."""
        answer = self.answer_to(self.begin(method, **params))
        assert "result" in answer, answer
        return answer["result"]

    def refusal(self, method: str, **params: object) -> tuple[int, str]:
        """Send a request that is refused; return the code, and why."""
        error = self.answer_to(self.begin(method, **params))["error"]
        return error["code"], error["message"]

    def opened(self, cwd: object) -> str:
        """Shake hands and begin a session; return its id."""
        self.ask("initialize", protocolVersion=1)
        return str(self.ask("session/new", cwd=str(cwd), mcpServers=[])["sessionId"])

    def begin_prompt(self, session: str, text: str) -> int:
        return self.begin("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    def prompt(self, session: str, text: str) -> str:
        """Say something; return all that is written until the answer is complete."""
        before = len(self.heard)
        answer = self.answer_to(self.begin_prompt(session, text))
        assert answer["result"]["stopReason"] == "end_turn", answer
        return self.written(before)

    def question(self) -> Message:
        """Wait until the editor is to ask a person."""
        return self.until(lambda message: message.get("method") == "session/request_permission")

    def choose(self, question: Message, name: str) -> None:
        """Answer a question with the option of this name."""
        options = {option["name"]: option["optionId"] for option in question["params"]["options"]}
        self.send(id=question["id"], result={"outcome": {"outcome": "selected", "optionId": options[name]}})

    def updates(self, kind: str, after: int = 0) -> list[Message]:
        told = [message["params"]["update"] for message in self.heard[after:] if _is_update(message)]
        return [update for update in told if update["sessionUpdate"] == kind]

    def written(self, after: int = 0) -> str:
        return "".join(update["content"]["text"] for update in self.updates("agent_message_chunk", after))

    def until(self, fits: Any) -> Message:
        """Wait for a message; others stay for whoever waits for them."""
        for unread in self._unread:
            if fits(unread):
                self._unread.remove(unread)
                return unread
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            except Empty:
                raise AssertionError(f"nothing came; before: {self.heard[-5:]}") from None
            assert line, f"it has left; before: {self.heard[-5:]}"
            message: Message = json.loads(line)
            self.heard.append(message)
            if fits(message):
                return message
            self._unread.append(message)

    def close(self) -> None:
        """Close our end."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def leave(self) -> int:
        """Close our end; return the exit code."""
        self.close()
        return self.process.wait(PATIENCE_SECONDS)

    def end(self) -> None:
        """Kill it, if it still runs."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")


def _is_update(message: Message) -> bool:
    return message.get("method") == "session/update"
