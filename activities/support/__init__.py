"""Code that activities share."""
