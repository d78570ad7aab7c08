"""Conversations on a real Temporal server, with a worker in this process."""

from tests.workflows.conftest import harness, temporal

__all__ = ["harness", "temporal"]
