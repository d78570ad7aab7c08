"""Imports what a worker needs, for a process that workers are forked from."""

import tests.crashes.__main__
import tests.crashes.deeds
import tests.crashes.working  # noqa: F401
