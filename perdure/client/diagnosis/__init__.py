"""The reasons why a conversation does not progress."""
