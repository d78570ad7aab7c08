"""Metadata of OpenAI's API: the tags of a conversation that name a value."""

from collections.abc import Iterable, Mapping


def to_tags(metadata: Mapping[str, str] | None) -> tuple[str, ...]:
    return tuple(f"{name}={value}" for name, value in (metadata or {}).items())


def from_tags(tags: Iterable[str]) -> dict[str, str]:
    """Return the metadata in tags; those of another form are words of perdure's own."""
    return {name: value for name, found, value in (tag.partition("=") for tag in tags) if found}


def merge_tags(tags: Iterable[str], metadata: Mapping[str, str]) -> tuple[str, ...]:
    """Return the tags with this metadata in place of what they had."""
    words = [tag for tag in tags if "=" not in tag]
    return (*words, *to_tags(metadata))
