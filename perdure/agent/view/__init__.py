"""The part of a log that a model sees, and the messages made from it."""
