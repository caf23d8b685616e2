"""The example conversation with changes of files: by turns, by somebody between them, and one that was taken back."""

from bullpen.file_changes import ChangeKind, ChangeRecord, FileChange, FileState, FolderChanges
from bullpen.store.base import Store
from bullpen.testing.conversations import BEGINNING, EXAMPLE_ID

FOLDER = "/home/kai/shop"
LOGIN_PATCH = """\
diff --git a/src/login.py b/src/login.py
index 1..2 100644
--- a/src/login.py
+++ b/src/login.py
@@ -1,4 +1,5 @@ import http
 def login(user):
-\treturn None
+\tcookie = "\x1b[2J深"
+\treturn cookie
\x20
 # end
diff --git a/notes b.txt b/moved b.txt
similarity index 100%
rename from notes b.txt
rename to moved b.txt
"""
PICTURE = FileChange(path="logo.png", kind="added", is_binary=True, new=FileState(blob="9"))
LOGIN = FileChange(
    path="src/login.py", kind="changed", old=FileState(blob="1"), new=FileState(blob="2"), added=2, removed=1
)
MOVED = FileChange(
    path="moved b.txt", renamed_from="notes b.txt", kind="renamed", old=FileState(blob="5"), new=FileState(blob="5")
)
TEST_PATCH = """\
diff --git a/test_login.py b/test_login.py
new file mode 100644
--- /dev/null
+++ b/test_login.py
@@ -0,0 +1,2 @@
+def test_login():
+    assert login("kai")
"""
TEST = FileChange(path="test_login.py", kind="added", new=FileState(blob="7"), added=2)
BY_HAND = FileChange(
    path="src/login.py", kind="changed", old=FileState(blob="2"), new=FileState(blob="3"), added=1, removed=1
)
BY_HAND_PATCH = """\
diff --git a/src/login.py b/src/login.py
--- a/src/login.py
+++ b/src/login.py
@@ -5 +5 @@
-# end
+# the end
"""


def record(
    kind: ChangeKind, *files: FileChange, patch: str = "", turn: str = "", member: str = "", after: int, **more: str
) -> ChangeRecord:
    changes = FolderChanges(folder=FOLDER, before="a", after="b", files=files, patch=patch, note=more.pop("note", ""))
    at = BEGINNING + after * 60_000
    return ChangeRecord(
        kind=kind,
        turn_id=turn,
        member=member,
        at=at,
        after_message=after,
        changes=changes,
        person=more.pop("person", ""),
    )


RECORDS = (
    record("turn", LOGIN, MOVED, PICTURE, patch=LOGIN_PATCH, turn="1", member="max", after=2),
    record("people", BY_HAND, patch=BY_HAND_PATCH, after=3),
    record("turn", turn="2", member="max", after=4, note="There is no git here."),
    record("turn", TEST, patch=TEST_PATCH, turn="3", member="sarah", after=6),
    record(
        "undo",
        FileChange(path="test_login.py", kind="deleted", old=FileState(blob="7"), removed=2),
        turn="3",
        member="sarah",
        after=6,
        person="kai",
    ),
)


def write_changes(store: Store, conversation_id: str = EXAMPLE_ID) -> None:
    """Store them all."""
    for one in RECORDS:
        store.add_changes(conversation_id, one)
