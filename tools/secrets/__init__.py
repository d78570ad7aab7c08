"""Values that only a command may see which names them: where they are, and their masks."""
