"""Sessions of the CLIs themselves: found, listed and read. Their files are only ever opened to be read."""
