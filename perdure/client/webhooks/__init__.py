"""Webhooks, for programs."""
