"""Turns as a few neutral parts, which every foreign protocol is a projection of."""
