"""The events of a conversation: frozen facts, distinguished by their `kind`."""
