"""Conversations as files: imported from elsewhere, exported as Markdown, HTML or JSON."""
