"""The conversations and batches of a user by name: those of the store, or of a gateway."""
