"""The risk of an action, judged by its text alone."""
