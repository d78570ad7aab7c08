"""Where the samples of a batch come from: one file a format."""
