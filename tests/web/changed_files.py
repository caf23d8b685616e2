"""A conversation in which turns, a person and an undo changed files, for pages and for the API."""

from collections.abc import Sequence

from bullpen.file_changes import ChangeKind, ChangeRecord, FileChange, FileState, FolderChanges
from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import Owner, Store, TurnEnd
from bullpen.testing.conversations import prompt_for
from bullpen.turn_events import Failed

TEAM = """name = "shop"
lead = "max"
[[member]]
name = "kim"
[[member]]
name = "max"
agent = "claude"
[[member]]
name = "sarah"
agent = "codex"
"""
ID = "changed-files"
OWNER = Owner(token="test", pid=1, start_time=1, boot_id="test")
LOGIN = """diff --git a/src/login.py b/src/login.py
--- a/src/login.py
+++ b/src/login.py
@@ -8,4 +8,5 @@ class Login:
     def check(self):
-        return False
+        # <b>bold</b> \u202e
+        return "yes"
     def end(self):
         a <i> b
diff --git a/old name.txt b/new name.txt
similarity index 100%
rename from old name.txt
rename to new name.txt
diff --git a/logo.png b/logo.png
new file mode 100644
Binary files /dev/null and b/logo.png differ
"""
BACK = """diff --git a/src/login.py b/src/login.py
--- a/src/login.py
+++ b/src/login.py
@@ -9,2 +9,1 @@ class Login:
-        # <b>bold</b> \u202e
-        return "yes"
+        return False
"""
OLD, NEW = FileState(blob="a" * 40), FileState(blob="b" * 40)
FILES = (
    FileChange(path="src/login.py", kind="changed", old=OLD, new=NEW, added=2, removed=1),
    FileChange(path="new name.txt", renamed_from="old name.txt", kind="renamed", old=OLD, new=OLD),
    FileChange(path="logo.png", kind="added", new=NEW, is_binary=True),
)


def write_changed(store: Store, more: Sequence[ChangeRecord] = (), *, team_path: str = "") -> None:
    """Store three messages; turn 1 changed files, turn 2 failed after it had, kim changed one and took one back."""
    conversation_id = ID
    store.create(conversation_id, team="shop", team_file=TEAM, team_path=team_path, started_at=1)
    store.claim(conversation_id, OWNER, is_alive=lambda _: False)
    kim = Speaker(role_id="kim", role_name="kim", type="human")
    max_ = Speaker(role_id="max", role_name="max", type="ai")
    asked = ConversationMessage(id="m1", content="Do it.", speaker=kim, timestamp=1000, routing=Routing())
    reply = ConversationMessage(
        id="m2", content="Done.", speaker=max_, timestamp=9000, routing=Routing(parent_message_id="m1")
    )
    again = ConversationMessage(id="m3", content="And now?", speaker=kim, timestamp=20_000, routing=Routing())
    turn = WaitingTurn(id="1", member="max", message_id="m1")
    store.append(conversation_id, asked, turns=[turn], owner=OWNER)
    store.start_turn(conversation_id, "1", owner=OWNER, given=prompt_for("max", [asked]), at=2000)
    end = TurnEnd(turn_id="1", state="done", at=9000)
    store.append(conversation_id, reply, finishes=end, owner=OWNER)
    _add(store, conversation_id, record("turn", turn_id="1", member="max", after=1, files=FILES, patch=LOGIN))
    by_hand = FileChange(path="notes.md", kind="added", new=NEW, added=1)
    notes = (
        "diff --git a/notes.md b/notes.md\nnew file mode 100644\n--- /dev/null\n+++ b/notes.md\n@@ -0,0 +1 @@\n+hi\n"
    )
    _add(store, conversation_id, record("people", after=2, files=(by_hand,), patch=notes))
    store.append(conversation_id, again, turns=[WaitingTurn(id="2", member="sarah", message_id="m3")], owner=OWNER)
    store.start_turn(conversation_id, "2", owner=OWNER, given=prompt_for("sarah", [again]), at=21_000)
    failure = Failed(kind="crashed", message="It crashed.", hint="Retry.", partial_text="")
    store.end_turn(conversation_id, TurnEnd(turn_id="2", state="failed", at=22_000, failure=failure), owner=OWNER)
    deleted = FileChange(path="gone.txt", kind="deleted", old=OLD, removed=3)
    _add(store, conversation_id, record("turn", turn_id="2", member="sarah", after=3, files=(deleted,)))
    back = FileChange(path="src/login.py", kind="changed", old=NEW, new=OLD, added=1, removed=2)
    undo = record("undo", turn_id="1", member="max", person="kim", after=3, files=(back,), patch=BACK)
    _add(store, conversation_id, undo)
    for another in more:
        _add(store, conversation_id, another)
    store.release(conversation_id, OWNER)


def record(
    kind: ChangeKind,
    *,
    after: int,
    files: tuple[FileChange, ...],
    patch: str = "",
    turn_id: str = "",
    member: str = "",
    person: str = "",
) -> ChangeRecord:
    """Return a record that is not stored yet."""
    changes = FolderChanges(folder="/work", before="c" * 40, after="d" * 40, files=files, patch=patch)
    return ChangeRecord(
        kind=kind,
        turn_id=turn_id,
        member=member,
        person=person,
        at=30_000,
        after_message=after,
        changes=changes,
    )


def _add(store: Store, conversation_id: str, made: ChangeRecord) -> None:
    store.add_changes(conversation_id, made, owner=OWNER)
