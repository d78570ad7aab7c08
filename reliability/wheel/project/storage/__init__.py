"""A package of the user's own that is called as a room of perdure is."""
