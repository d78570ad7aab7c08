"""Names, connection, converter and errors that every user of Temporal here shares."""
