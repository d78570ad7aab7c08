"""The lists of conversations: filtered, in the order of their activity, a page at a time."""
