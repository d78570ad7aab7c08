"""Traces, metrics and log lines of what conversations do, and their names."""
