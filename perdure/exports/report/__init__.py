"""Pages for people: what came of a batch, and how batches differ. Pure functions of results."""
