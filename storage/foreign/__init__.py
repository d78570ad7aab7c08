"""Objects that protocols of others need of a user, and no log has."""
