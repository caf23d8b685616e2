"""Mistakes that once survived every test: each is tried again in every run."""

NAMED: tuple[tuple[str, str, str], ...] = (
    ("agents/process_tree.py", "state.start_time == process.start_time and not", "not"),
    ("text/secrets.py", "key=len, reverse=True", "key=len, reverse=False"),
    ("text/secrets.py", "PRIVATE KEY(?: BLOCK)? ?-", "PRIVATE KEY ?-"),
    (
        "agents/crash_records.py",
        "just removed it.\n                continue",
        "just removed it.\n                record = None",
    ),
    (
        "agents/guardian_program.py",
        "family = _kill_family()",
        "family = [os.kill(child, signal.SIGKILL) for child in _children(os.getpid())]",
    ),
    ("agents/guardian.py", "if isinstance(error, CannotStart | NotImplementedError):", "if True:"),
    (
        "agents/guarded_program.py",
        "except OSError:\n            # Killed",
        "except BlockingIOError:\n            # Killed",
    ),
    ("agents/guarded_program.py", "self._family) and is_heard", "self._family)"),
    ("agents/plain_program.py", "os.WEXITED | os.WNOWAIT", "os.WEXITED"),
    ("agents/process.py", "        if is_gone:\n", "        if True:\n"),
    ("agents/process.py", "            self._program.abandon()\n", ""),
    ("agents/process.py", "theirs.callback(os.close, its_end)", "pass"),
    (
        "agents/transcript.py",
        "text=self._shown(text)[:MAX_NOTICE_CHARACTERS]",
        "text=str(text)[:MAX_NOTICE_CHARACTERS]",
    ),
    (
        "agents/transcript.py",
        "strip_escape_sequences(self._stderr.decode(",
        "strip_escape_sequences(self._stderr[-STDERR_TAIL_BYTES:].decode(",
    ),
    ("agents/common_records.py", "0 <= value < 2**53", "value < 2**53"),
    (
        "conversation/decisions.py",
        "intent=PUT_FIRST, step=turn.step)\n    change, held",
        "intent=PUT_FIRST, step=0)\n    change, held",
    ),
    ("conversation/decisions.py", "if later.message_id == turn.message_id)", "if later)"),
    ("conversation/resume.py", "if to in people and by in agents", "if to in people"),
    ("conversation/turn_loop.py", "if turn.id not in self._state.running:", "if False:"),
    ("conversation/owner.py", "boots[0] == boots[1] if all(boots)", "True if all(boots)"),
    ("store/files.py", "FILE_MODE = 0o600", "FILE_MODE = 0o640"),
    ("store/files.py", "st_mode) & 0o077", "st_mode) & 0o007"),
    ("store/sqlite.py", "self._intact.get(place.number) != place.head", "place.number not in self._intact"),
    ("store/fsck.py", "reply NOT BETWEEN asked_by + 1 AND", "reply NOT BETWEEN 1 AND"),
)
"""A module below src/bullpen, what stands there once, and the mistake."""
