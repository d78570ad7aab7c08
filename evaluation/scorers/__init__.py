"""Who tells what an agent's work is worth: one file a scorer."""
