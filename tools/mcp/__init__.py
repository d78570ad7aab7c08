"""Servers of the Model Context Protocol, and their tools."""
