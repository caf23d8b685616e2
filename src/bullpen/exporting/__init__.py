"""A conversation as a file that can be read without bullpen: Markdown, one HTML page, JSON."""
