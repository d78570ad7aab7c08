"""Functions as tools of the Model Context Protocol."""

from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver.tools import Tool
from mcp_types import ToolAnnotations


def make_tool(work: Callable[..., Any], hints: ToolAnnotations) -> Tool:
    """Make a tool whose complaints about arguments do not repeat them: some may be secret."""
    tool = Tool.from_function(work, annotations=hints)
    arguments = tool.fn_metadata.arg_model
    arguments.model_config["hide_input_in_errors"] = True
    arguments.model_rebuild(force=True)
    return tool
