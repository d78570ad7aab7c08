"""Object stores for conversations and batches: one object an event, written once."""
