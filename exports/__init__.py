"""A conversation in the formats of others: pure projections of its events."""
