"""Exports of a conversation to the formats of others: pure projections of its events."""
