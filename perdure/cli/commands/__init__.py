"""The work of the commands, imported when one is used."""
