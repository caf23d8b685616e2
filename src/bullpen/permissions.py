"""What an agent may do."""

from typing import Literal

Permission = Literal["read-only", "edit", "ask", "full"]
"""Read; also change files in its folder; also do anything else that a person allows; do anything unasked."""
