"""Conversations on a real Temporal server, with a worker in this process."""

from tests.workflows.conftest import house, temporal

__all__ = ["house", "temporal"]
