"""The steps of a conversation: each works in the world, and logs what came of it once."""
