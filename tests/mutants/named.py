"""Mistakes that once survived every test: each is tried again in every run."""

NAMED: tuple[tuple[str, str, str], ...] = (
    ("agents/process_tree.py", "state.start_time == process.start_time and not", "not"),
    ("text/secrets.py", "key=len, reverse=True", "key=len, reverse=False"),
    ("agents/common_records.py", "0 <= value < 2**53", "value < 2**53"),
    (
        "conversation/decisions.py",
        "again = state.new_turn(turn.member, turn.message_id, intent=PUT_FIRST, step=turn.step)",
        "again = state.new_turn(turn.member, turn.message_id, intent=PUT_FIRST, step=0)",
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
