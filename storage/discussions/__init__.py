"""The logs that the agents of a discussion share."""
