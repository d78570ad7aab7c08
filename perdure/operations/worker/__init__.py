"""The life of a worker: its processes, their options, probes, memory and end."""
