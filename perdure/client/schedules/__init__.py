"""Schedules, for programs."""
