"""The benches of memories."""
