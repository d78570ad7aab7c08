from tests.workflows.conftest import harness, temporal

__all__ = ["harness", "temporal"]
