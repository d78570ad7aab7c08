"""A tool of the user's own."""

from perdure import tool


@tool(read_only=True)
async def weather(city: str) -> str:
    """Report the weather in a city."""
    return f"It rains in {city}."
