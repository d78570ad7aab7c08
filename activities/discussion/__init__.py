"""The steps of discussions."""
