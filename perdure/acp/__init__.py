"""The Agent Client Protocol: conversations in an editor that starts `perdure acp`."""
