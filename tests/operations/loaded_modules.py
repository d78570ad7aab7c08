"""A tool that tells what the worker has loaded."""

import sys

from perdure.tools.function import tool


@tool(read_only=True)
def loaded_modules() -> str:
    """Name the modules of this process."""
    return " ".join(sys.modules)


TOOLS = (loaded_modules,)
