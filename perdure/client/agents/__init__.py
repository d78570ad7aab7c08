"""The agents of names: where they are written, and what is in force of a start."""
