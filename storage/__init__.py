"""Where conversations are kept: one object an event, written once and never again."""
