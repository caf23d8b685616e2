"""What holds for all tests, those of `proofs/` too: one module for each idea."""

pytest_plugins = (
    "tests.harness.isolation",
    "tests.harness.tiers",
    "tests.harness.collection",
    "tests.harness.time_limits",
    "tests.harness.leftovers",
    "tests.harness.failure_report",
    "tests.harness.fixtures",
)
