"""Activities: the steps of a conversation, each of which records its result exactly once."""
