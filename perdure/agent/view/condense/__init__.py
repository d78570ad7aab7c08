"""Condensing a view that has grown too large."""
