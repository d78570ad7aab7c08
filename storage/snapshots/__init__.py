"""Every byte of a workspace in a store, so that another machine can go on with its files."""
