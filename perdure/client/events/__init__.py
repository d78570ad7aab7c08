"""Events as values for programs: read, made, listed."""
