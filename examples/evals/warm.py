"""Imports what a worker will need, for a process that workers are forked from."""

import importlib

for module in ("perdure.models.direct.connections", "perdure.worker"):
    importlib.import_module(module)
