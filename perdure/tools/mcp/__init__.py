"""Tools from servers of the Model Context Protocol (MCP)."""
