"""The spans of others, as W3C Trace Context writes them."""

import re

TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
"""A version, the id of a trace, that of a span in it, and flags."""
