"""What the system tells of its processes. A folder of its own, since psutil is loaded only where it is needed."""
