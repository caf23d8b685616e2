"""What the operating system itself keeps an agent's programs from, whichever program it is."""
