"""The event log of one conversation: append, read, fork, verify, purge."""
