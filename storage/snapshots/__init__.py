"""Snapshots: every byte of a workspace in a store, so that another machine can continue with it."""
