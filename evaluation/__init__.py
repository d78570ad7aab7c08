"""What a batch is, how its samples are scored, and what the scores say: pure functions."""
