"""The risk of an action."""

from typing import Literal, TypeAlias

Risk: TypeAlias = Literal["UNKNOWN", "LOW", "MEDIUM", "HIGH"]
