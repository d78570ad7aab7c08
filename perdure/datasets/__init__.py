"""Readers of datasets, a file for each format, and the table of a batch's results."""
