"""The responses of a model: parsed, checked and turned into events."""
