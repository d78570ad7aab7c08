"""The probes; among the quick ones, those that may kill the host's processes come last."""

from tests.sandbox.exhaustions import EXHAUSTIONS
from tests.sandbox.files import FILES, PRIVILEGES
from tests.sandbox.kernel import KERNEL
from tests.sandbox.others import NETWORK, PROCESSES, SURVIVORS

QUICK = (*FILES, *KERNEL, *PRIVILEGES, *NETWORK, *PROCESSES)
ALL = (*SURVIVORS, *EXHAUSTIONS, *QUICK)
