"""Recording what waited in the inbox of a conversation."""
