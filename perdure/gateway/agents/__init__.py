"""The agents that an installation offers, and what those of requests may be."""
