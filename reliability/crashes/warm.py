"""Imports what a worker needs, for a process that workers are forked from.

What is slow and imported where it is first used, a forked worker would import each time: half of
the CPU of a case, and so long at once that its heartbeats come late.
"""

import gc
import warnings

from pydantic import BaseModel

import perdure.testing.scripted_model
import perdure.tools.mcp.results
import perdure.tools.mcp.schema
import perdure.tools.mcp.session
import perdure.tools.mcp.transports  # noqa: F401
import reliability.crashes.__main__
import reliability.crashes.tools
import reliability.crashes.worker  # noqa: F401
from perdure.memory.lance_rows import load_library
from tests.secrets.keys import key_ring


def _complete(model: type[BaseModel]) -> None:
    """Build the validators of a model and of those that inherit from it."""
    if model.__module__.startswith("perdure.") and not model.__pydantic_complete__:
        model.model_rebuild(raise_errors=False)
    for each in model.__subclasses__():
        _complete(each)


# Nothing of LanceDB but its modules is there when a worker is forked.
warnings.filterwarnings("ignore", "lancedb fork support", RuntimeWarning)
load_library()
key_ring("warm")
_complete(BaseModel)
gc.freeze()  # else a collection in a worker copies all of this
