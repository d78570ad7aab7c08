"""Servers of models that are called without litellm: connections, requests and errors."""
