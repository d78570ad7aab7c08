"""Discussions: who may write into the shared log, what its readers see, and how it goes on."""
