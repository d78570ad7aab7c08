"""The references to the tools that a program gives an agent as functions."""

from typing import Any

from perdure.errors import Invalid


def tool_reference(tool: Any) -> str:
    """Return the name by which a worker finds a tool. Raises Invalid."""
    if isinstance(tool, str):
        return tool
    module, name = getattr(tool, "__module__", "__main__"), getattr(tool, "__qualname__", "")
    if not callable(tool) or not name:
        raise Invalid(
            f"{tool!r} is no tool.",
            "Name a built-in tool or `module:attribute`, or give a function with type hints.",
        )
    if module == "__main__" or not name.isidentifier():
        raise Invalid(
            f"The tool {name!r} cannot be imported by a worker.",
            "Put it at the top level of a module of its own, and import it from there.",
        )
    return f"{module}:{name}"
