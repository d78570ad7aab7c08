"""The reasons why an agent cannot have the tools that it names."""


class CatalogError(ValueError):
    """An agent cannot have these tools; the text says why, and what to use instead."""

    code = "tool_not_found"


class ToolNotFound(CatalogError):
    """A reference leads to no tool."""


class UntypedTool(CatalogError):
    """A function lacks what a model needs to call it."""


class DuplicateTool(CatalogError):
    """Two tools of one agent have the same name."""
