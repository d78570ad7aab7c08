"""One module a command, each with its `app`; imported only when its command is used."""
