"""The handles by which programs start, control, read and rescore batches."""
