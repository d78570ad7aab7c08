"""What can happen in a conversation: frozen facts, told apart by their `kind`."""
