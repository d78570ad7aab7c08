"""The modules of the page, called in a browser."""

from dataclasses import dataclass
from typing import Any

from tests.gateway.page.browser import Visitor

CALL = """async ([address, code, argument]) => {
  const module = await import(address);
  return await new Promise((resolve) => resolve(CODE(module, argument)));
}"""


@dataclass(frozen=True)
class Modules:
    """A page in which modules are called; `digest` is that of their addresses."""

    visitor: Visitor
    digest: str

    async def call(self, module: str, code: str, argument: Any = None) -> Any:
        """Call a JavaScript function with the module and the argument; return what it returns."""
        address = f"/page/{self.digest}/{module}"
        script = CALL.replace("CODE", f"({code})")
        return await self.visitor.page.evaluate(script, [address, None, argument])
