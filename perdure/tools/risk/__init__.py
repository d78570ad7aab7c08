"""How dangerous an action is, told from its text alone."""
