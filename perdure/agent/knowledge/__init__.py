"""The system prompt, skills and repository instructions."""
