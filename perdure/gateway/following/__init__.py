"""Following conversations: each is followed once in a process, however many clients watch it."""
