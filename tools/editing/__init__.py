"""Changing files, all or none."""
