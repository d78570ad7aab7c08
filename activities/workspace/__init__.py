"""The files of a conversation: snapshots, skills and instructions."""
