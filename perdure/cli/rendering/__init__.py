"""Conversations and their events, rendered for a terminal."""
