"""OpenAI-compatible servers, called without litellm."""
