"""Secrets: values that only commands see, and that are masked everywhere else."""
