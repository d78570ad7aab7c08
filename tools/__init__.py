"""What an agent can do. One file a tool."""
