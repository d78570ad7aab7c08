"""The AG-UI protocol: one run of an agent as a stream of events."""
