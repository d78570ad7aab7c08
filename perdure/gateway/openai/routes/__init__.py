"""The routes: thin, over what the room has."""
