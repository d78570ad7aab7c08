"""OpenAI's API over conversations: models, chat completions, responses and conversations."""
