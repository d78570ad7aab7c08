"""The consoles of rich, for what has styles or a width: slow to import, and of no use on a pipe."""

from rich.console import Console

stdout = Console(highlight=False, markup=False, soft_wrap=True)
stderr = Console(highlight=False, markup=False, soft_wrap=True, stderr=True)
