"""Errors of the embedded stack; each message is for a person."""

from perdure.errors import PerdureError


class EmbeddedError(PerdureError):
    """A stack that cannot run; the message says why and what to do."""


class ProcessFailed(EmbeddedError):
    """A program failed to start, or ended; the message ends with the end of its log."""


class FolderTaken(EmbeddedError):
    """Another stack runs in the folder."""


class FolderUnusable(EmbeddedError):
    """The folder cannot be created or written."""


class PortTaken(EmbeddedError):
    """Another program has a port that was asked for."""


class DiskFull(EmbeddedError):
    """The disk of a stack's folder has no room for its work."""
