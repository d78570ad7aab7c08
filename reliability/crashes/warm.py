"""Imports what a worker needs, for a process that workers are forked from."""

import reliability.crashes.__main__
import reliability.crashes.tools
import reliability.crashes.worker  # noqa: F401
