"""Which modules are riskiest, and which tests are there to protect each of them."""

STORE = ("tests/store", "tests/conversation/test_durable.py", "tests/conversation/test_owners.py")
CONVERSATION = ("tests/conversation", "tests/view")
PROCESSES = ("tests/agents/test_process.py", "tests/agents/test_guardian.py", "tests/agents/test_runner.py")
MARKERS = ("tests/markers", "tests/context", "tests/routing")

PLAN: dict[str, tuple[str, ...]] = {
    "store/chain.py": STORE,
    "store/conversation_rows.py": STORE,
    "store/fsck.py": STORE,
    "store/files.py": STORE,
    "store/message_rows.py": STORE,
    "store/owner_locks.py": STORE,
    "store/sqlite.py": STORE,
    "store/stuck.py": STORE,
    "store/text_delta.py": STORE,
    "store/turn_rows.py": STORE,
    "store/write_ahead_log.py": STORE,
    "conversation/consequences.py": CONVERSATION,
    "conversation/decisions.py": CONVERSATION,
    "conversation/owner.py": CONVERSATION,
    "conversation/prompts.py": CONVERSATION,
    "conversation/resume.py": CONVERSATION,
    "conversation/state.py": CONVERSATION,
    "conversation/turn_loop.py": CONVERSATION,
    "routing/obstacles.py": ("tests/routing/test_obstacles.py",),
    "markers/code.py": MARKERS,
    "markers/grammar.py": MARKERS,
    "markers/runs.py": MARKERS,
    "markers/stripping.py": MARKERS,
    "context/budget.py": ("tests/context",),
    "context/builder.py": ("tests/context",),
    "text/safe.py": ("tests/text", "tests/terminal", "tests/tui/test_text.py"),
    "text/secrets.py": ("tests/text", "tests/agents"),
    "web/accepting.py": ("tests/web",),
    "web/access.py": ("tests/web",),
    "web/connections.py": ("tests/web",),
    "web/credentials.py": ("tests/web",),
    "web/guard.py": ("tests/web",),
    "web/identity.py": ("tests/web",),
    "web/requests.py": ("tests/web",),
    "web/sessions.py": ("tests/web",),
    "agents/common_records.py": ("tests/agents",),
    "agents/crash_records.py": ("tests/agents",),
    "agents/guarded_program.py": PROCESSES,
    "agents/guardian.py": PROCESSES,
    "agents/guardian_program.py": PROCESSES,
    "agents/plain_program.py": PROCESSES,
    "agents/process.py": ("tests/agents",),
    "agents/process_tree.py": ("tests/agents",),
    "agents/transcript.py": ("tests/agents",),
}
"""Below src/bullpen."""
