"""Models of any provider, called through litellm."""
