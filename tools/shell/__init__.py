"""The shell session behind the terminal."""
