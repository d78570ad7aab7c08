"""The work of the `perdure batch` commands, imported when one is used."""
