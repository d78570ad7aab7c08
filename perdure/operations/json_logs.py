"""Log lines as JSON, an object a line: what is not a terminal is read by programs."""

import contextlib
import json
import logging
from datetime import UTC, datetime
from typing import Any

FIELDS = ("trace_id", "conversation_id", "user_id", "batch", "duration", "success", "restored")
"""The attributes of a record that stand beside its message, where it has them."""


class JsonFormatter(logging.Formatter):
    """Formats a record whose message and traceback are masked already."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "process": record.process,
            **_describe(record),
        }
        for name in FIELDS:
            if (value := getattr(record, name, None)) is not None:
                line[name] = value
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            line["exception"] = record.exc_text
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        return json.dumps(line, ensure_ascii=False)


def _describe(record: logging.LogRecord) -> dict[str, Any]:
    """Return the message, or the fields of one that is JSON itself."""
    message = record.getMessage()
    if getattr(record, "is_json", False):
        with contextlib.suppress(ValueError):
            fields: dict[str, Any] = json.loads(message)
            return fields
    return {"message": message}
