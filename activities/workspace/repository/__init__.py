"""Cloning a git repository into a workspace."""
