"""The client of a gateway: conversations and batches over HTTP, with a key alone."""
