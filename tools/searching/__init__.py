"""Which files of a workspace are looked at."""
