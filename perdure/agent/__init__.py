"""The agent as pure functions of what has happened: no clock, no I/O, no randomness."""
