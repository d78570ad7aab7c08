"""A Temporal server and an S3 store of our own, for development, demos and tests."""
