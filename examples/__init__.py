"""Programs that use perdure as anybody would."""
