"""All that reads what somebody else wrote."""

from tests.fuzz.answered import ANSWERED
from tests.fuzz.given import GIVEN
from tests.fuzz.performed import PERFORMED
from tests.fuzz.stored import STORED

TARGETS = (*STORED, *ANSWERED, *PERFORMED, *GIVEN)
