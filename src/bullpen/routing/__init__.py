"""Who answers a message, and in which order: plain data, no I/O."""
