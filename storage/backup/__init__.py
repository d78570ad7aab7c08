"""Copies of a store in another one, whole or as it was at a moment."""
