"""The vendors' model APIs on loopback, so that the real CLIs can run without a model."""

from bullpen.testing.models.script import ModelRequest, Reply, Script, ToolCall, Vendor
from bullpen.testing.models.server import ModelServer

__all__ = ["ModelRequest", "ModelServer", "Reply", "Script", "ToolCall", "Vendor"]
