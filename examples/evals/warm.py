"""Imports what a worker will need, for a process that workers are forked from."""

import importlib
import os

from models.litellm import ENVIRONMENT

os.environ.update(ENVIRONMENT)
for module in ("litellm", "worker"):
    importlib.import_module(module)
