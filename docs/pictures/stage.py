"""The conversation in the pictures: a team, and what each of its agents does and says."""

from bullpen.testing.stage import Script

TEAM = """
name = "shop"
task = "A login that survives a restart, with tests"

[[member]]
name = "kim"
display_name = "Kim"

[[member]]
name = "max"
agent = "claude"
role = "builds"
color = "blue"
permissions = "edit"

[[member]]
name = "sarah"
agent = "codex"
role = "reviews"
color = "magenta"

[[member]]
name = "ada"
agent = "gemini"
role = "writes the docs"
color = "green"
"""

PLAN = """The session was kept in memory, so a restart logged everybody out. I moved it into the store:

```python
def restore(store: Store, cookie: str) -> Session | None:
    \"\"\"Return the session of a cookie, if it is still good.\"\"\"
    row = store.sessions.get(digest(cookie))
    return None if row is None or row.expires < now() else row.session
```

- the cookie holds 256 bits, and the store only their hash
- `test_restart.py` logs in, restarts, and is still logged in

Please look at the expiry, and write it down.

[NEXT: sarah & ada]"""

REVIEW = """Two things, both small:

1. `expires < now()` lets a session live one tick too long; make it `<=`.
2. Restoring should **rotate** the cookie, or a stolen one is good for ever.

Everything else is fine: 14 tests pass here.

[NEXT: max]"""

DOCS = """I added a section to `docs/login.md`:

> Sessions survive a restart. They end after 14 days, or when you log out everywhere.

It needs the final number of days from you."""

DONE = """Both done: sessions now end on the tick, and every restart gives a new cookie.

```diff
-    return None if row is None or row.expires < now() else row.session
+    if row is None or row.expires <= now():
+        return None
+    return rotated(row.session)
```

Shall it be 14 days, as the docs say?"""

SCRIPTS: dict[str, list[Script]] = {
    "claude": [
        [
            {"think": "The session dictionary is a module global. It must move into the store."},
            {
                "tool": {
                    "name": "Read",
                    "input": {"file_path": "shop/login.py"},
                    "output": "SESSIONS: dict[str, Session] = {}\n",
                }
            },
            {
                "tool": {
                    "name": "Edit",
                    "input": {"file_path": "shop/login.py", "old_string": "SESSIONS", "new_string": "store.sessions"},
                    "output": "The file shop/login.py has been updated.",
                }
            },
            {
                "tool": {
                    "name": "Bash",
                    "input": {"command": "pytest -q tests/test_restart.py"},
                    "output": "14 passed in 0.41s",
                    "seconds": 0.4,
                }
            },
            {"say": PLAN, "chunk": 24, "delay": 0.05},
            {"usage": {"input": 18200, "output": 912, "cached": 15100}, "cost": 0.0412},
        ],
        [
            {"think": "Rotate on restore, and compare with <=."},
            {
                "tool": {
                    "name": "Edit",
                    "input": {"file_path": "shop/login.py"},
                    "output": "The file shop/login.py has been updated.",
                }
            },
            {"say": DONE, "chunk": 12, "delay": 0.15},
            {"usage": {"input": 21900, "output": 388, "cached": 18000}, "cost": 0.0287},
        ],
    ],
    "codex": [
        [
            {
                "tool": {
                    "name": "shell",
                    "input": {"command": "pytest -q"},
                    "output": "14 passed in 0.52s",
                    "seconds": 0.3,
                }
            },
            {"say": REVIEW, "chunk": 30, "delay": 0.03},
            {"usage": {"input": 9400, "output": 260, "cached": 4000}},
        ]
    ],
    "gemini": [
        [
            {"say": DOCS, "chunk": 30, "delay": 0.03},
            {"usage": {"input": 7100, "output": 140, "cached": 0}},
        ]
    ],
}
