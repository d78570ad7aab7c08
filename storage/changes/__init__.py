"""What an agent changed in a directory of its user's, of which no snapshots are taken."""
