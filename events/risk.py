"""How dangerous an action may be."""

from typing import Literal, TypeAlias

Risk: TypeAlias = Literal["UNKNOWN", "LOW", "MEDIUM", "HIGH"]
