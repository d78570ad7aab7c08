"""The activities of batches and of their samples."""
