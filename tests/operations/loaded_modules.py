"""A tool that tells what the worker has loaded."""

import logging
import sys

from perdure.tools.function import tool

logger = logging.getLogger(__name__)


@tool(read_only=True)
def loaded_modules() -> str:
    """Name the modules of this process."""
    logger.warning("the modules are listed")
    return " ".join(sys.modules)


TOOLS = (loaded_modules,)
