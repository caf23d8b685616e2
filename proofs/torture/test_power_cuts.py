"""What ten thousand power cuts found once, looked for directly."""

import pytest
from proofs.torture.disk import operations
from proofs.torture.power_cuts import recorded
from proofs.torture.shim import scratch, why_not

LOG_HEADER_BYTES = 32


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_the_beginning_of_a_log_is_synced_before_anything_is_put_into_it() -> None:
    """Or a power cut keeps the old beginning, and what is left of the old log covers what is newer in the file."""
    with scratch() as folder:
        logs: set[int] = set()
        begun: dict[int, int] = {}
        beginnings = 0
        # An odd seed, with which the log begins anew every few steps.
        for number, operation in enumerate(operations(recorded(folder, seed=13, steps=150))):
            if operation.kind == "create" and operation.path.endswith("-wal"):
                logs.add(operation.inode)
            if operation.inode not in logs:
                continue
            if operation.kind == "sync":
                begun.pop(operation.inode, None)
            elif operation.kind == "write":
                assert operation.inode not in begun, f"operation {number} follows a beginning that is not synced"
                if (operation.place, len(operation.data)) == (0, LOG_HEADER_BYTES):
                    begun[operation.inode] = number
                    beginnings += 1

    assert beginnings > 5
