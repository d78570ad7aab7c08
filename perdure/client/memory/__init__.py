"""The memories of a user, for programs."""
