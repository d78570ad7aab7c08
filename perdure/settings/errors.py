"""The error of the settings, apart from them: pydantic-settings is slow to import."""

from perdure.errors import PerdureError


class SettingsError(PerdureError):
    """An unusable setting; the message names it, and where it is set."""
