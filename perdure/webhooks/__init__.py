"""Posts to addresses that users name: where they may go, and how they are signed."""
