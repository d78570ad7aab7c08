"""`perdure chat`: a conversation at the terminal, or by the lines of stdin."""
