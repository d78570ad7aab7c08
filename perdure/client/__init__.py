"""The client: conversations and batches through signals, updates and the log."""
