"""The `Batch` workflow."""
