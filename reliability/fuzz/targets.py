"""The readers of foreign input, as targets of the fuzzer."""

from reliability.fuzz.input_targets import INPUT_TARGETS
from reliability.fuzz.model_targets import MODEL_TARGETS
from reliability.fuzz.store_targets import STORE_TARGETS
from reliability.fuzz.tool_targets import TOOL_TARGETS

TARGETS = (*STORE_TARGETS, *MODEL_TARGETS, *TOOL_TARGETS, *INPUT_TARGETS)
