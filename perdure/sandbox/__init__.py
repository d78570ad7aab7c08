"""The sandboxes that confine an agent's commands on the worker's machine."""
