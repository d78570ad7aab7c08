"""Discussions for programs."""
