"""Imports what a worker will need, for a process that workers are forked from."""

import importlib

MODULES = (
    "perdure.models.direct.connections",
    "perdure.worker",
    "reliability.chaos.tools",
)

for module in MODULES:
    importlib.import_module(module)
