"""How a program talks to conversations: signals, updates, and the log."""
