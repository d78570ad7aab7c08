"""Language models: litellm for real providers, and scripted and recorded models for tests."""
