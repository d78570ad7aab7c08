"""What an agent changed in its workspace, by snapshots or by records of its user's directory."""
