"""All probes; the quick ones in an order in which those come last that may take the host along."""

from tests.sandbox.exhaustions import EXHAUSTIONS
from tests.sandbox.files import FILES, PRIVILEGES
from tests.sandbox.kernel import KERNEL
from tests.sandbox.others import NETWORK, PROCESSES, SURVIVORS

QUICK = (*FILES, *KERNEL, *PRIVILEGES, *NETWORK, *PROCESSES)
ALL = (*SURVIVORS, *EXHAUSTIONS, *QUICK)
