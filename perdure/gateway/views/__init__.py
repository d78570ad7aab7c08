"""Conversations and batches as the API shows them, with the headers of such answers."""
