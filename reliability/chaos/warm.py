"""Imports what a worker will need, for a process that workers are forked from."""

import gc
import importlib
import os
import warnings

MODULES = (
    "perdure.models.direct.connections",
    "perdure.worker",
    "reliability.chaos.state_tools",
    "reliability.chaos.tools",
    # What agents with a clone, secrets, servers and memories need besides.
    "perdure.tools.mcp.results",
    "perdure.tools.mcp.transports",
    "lancedb",
    "lancedb.index",
    "lancedb.rerankers",
)

# As `perdure.memory.lance_rows` does before it imports the library.
os.environ.setdefault("LANCEDB_LOG", "error")
# A fork server is what its warning recommends: nothing of the library is at work in it.
warnings.filterwarnings("ignore", "lancedb fork support", RuntimeWarning)
for module in MODULES:
    importlib.import_module(module)
gc.collect()
gc.freeze()  # else each worker looks for garbage among all of it, which takes a quarter of a second
