"""Batches, their samples, scorers and results, and the statistics of scores: pure functions."""
