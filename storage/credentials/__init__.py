"""The credentials by which a gateway knows its callers; secrets are kept as hashes."""
