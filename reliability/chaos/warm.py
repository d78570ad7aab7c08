"""Imports what a worker will need, for a process that workers are forked from."""

import importlib
import os

from perdure.models.litellm.client import LITELLM_ENVIRONMENT

os.environ.update(LITELLM_ENVIRONMENT)
for module in ("litellm", "perdure.worker", "reliability.chaos.tools"):
    importlib.import_module(module)
