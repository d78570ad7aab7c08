"""Edits of files in a workspace."""
