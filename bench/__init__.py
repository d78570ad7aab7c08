"""Benchmarks; each figure stands beside a floor measured in the same run."""
