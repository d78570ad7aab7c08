"""Imports what a worker will need, for a process that workers are forked from."""

import importlib
import os

from perdure.models.litellm.client import LITELLM_ENVIRONMENT

os.environ.update(LITELLM_ENVIRONMENT)
for module in ("litellm", "perdure.worker", "examples.bfcl.backends"):
    importlib.import_module(module)
