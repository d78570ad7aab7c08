"""A dataset of the user's own."""


def rows() -> list[dict[str, str]]:
    """Two samples."""
    return [{"id": city, "input": f"The weather in {city}?", "target": "rains"} for city in CITIES]


CITIES = ("Bergen", "Oslo")
