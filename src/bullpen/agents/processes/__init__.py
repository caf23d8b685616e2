"""The system's process table. A separate package, since psutil is loaded only where it is needed."""
