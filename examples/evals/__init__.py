"""Batches over sets that others have made, where what the score must be is known beforehand."""
