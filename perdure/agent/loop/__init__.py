"""The loop of a conversation: its state, the next steps, and the effect of each event."""
