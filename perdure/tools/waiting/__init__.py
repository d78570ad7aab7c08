"""The tools by which an agent waits."""
