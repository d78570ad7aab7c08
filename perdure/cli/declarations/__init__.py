"""The command line: names, options and help of each command, without its work."""
