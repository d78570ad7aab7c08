"""Anthropic's Messages API, called without litellm."""
