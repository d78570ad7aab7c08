"""The format of log lines."""

from typing import Literal, TypeAlias

LogFormat: TypeAlias = Literal["auto", "json", "text"]
