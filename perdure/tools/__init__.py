"""The tools of agents, one file each."""
