"""The routes of the native API, a file for each kind of thing."""
