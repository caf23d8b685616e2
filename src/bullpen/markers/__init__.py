"""Markers such as [NEXT: name]: reading them, stripping them, and where a text is code so that nothing is one."""
