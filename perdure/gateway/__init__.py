"""The gateway: HTTP and sockets for those who have no keys of Temporal and the store."""
