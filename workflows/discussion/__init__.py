"""The workflow of a discussion."""
