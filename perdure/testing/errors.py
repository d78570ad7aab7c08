"""The errors of scripts."""

from perdure.errors import PerdureError


class ScriptError(PerdureError, ValueError):
    """A script file cannot be used; `str(error)` names the file and the position."""
