"""Turns as objects of OpenAI: pure functions of their parts."""
