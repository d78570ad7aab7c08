from tests.workflows.conftest import house, temporal

__all__ = ["house", "temporal"]
