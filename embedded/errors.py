"""What can keep a server or a stack of ours from running; each message is for the person."""


class EmbeddedError(Exception):
    """A stack that does not run; the text says why and what to do."""


class ProcessFailed(EmbeddedError):
    """A program did not come up, or went down; the text says how, and ends with its last words."""


class FolderTaken(EmbeddedError):
    """Another stack runs in this folder."""


class FolderUnusable(EmbeddedError):
    """A folder that cannot be made or written."""
