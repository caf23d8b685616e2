"""Markers such as [NEXT: name]: reading and stripping them, and finding the code in a text, which has none."""
