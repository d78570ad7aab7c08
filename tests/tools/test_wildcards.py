"""Patterns match the paths that a shell or git would say they match."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.searching.wildcards import LONGEST, MOST, expanded, matcher


@pytest.mark.parametrize(
    ("pattern", "path", "is_match"),
    [
        ("*.py", "a.py", True),
        ("*.py", "a/b/c.py", True),
        ("*.py", "a.pyc", False),
        ("./*.py", "a.py", True),
        ("./*.py", "a/b.py", False),
        ("a/*.py", "a/b.py", True),
        ("a/*.py", "a/b/c.py", False),
        ("a/**/*.py", "a/b.py", True),
        ("a/**/*.py", "a/b/c/d.py", True),
        ("a/**/*.py", "b/a/c.py", False),
        ("**/a/*", "x/a/b", True),
        ("a/**", "a/b/c", True),
        ("a/**", "a", False),
        ("**", "a/b", True),
        ("**/*", "a", True),
        ("a/**/**/b", "a/b", True),
        ("?.[ch]", "x.c", True),
        ("?.[!ch]", "x.c", False),
        ("*.{ts,tsx}", "a/b.tsx", True),
        ("{a,b/{c,d}}/*.py", "b/d/x.py", True),
        ("{a,b/{c,d}}/*.py", "b/x.py", False),
        ("a{,.py}", "a", True),
        ("a{b}", "a{b}", True),
        ("a{b,c", "a{b,c", True),
        ("A.py", "a.py", False),
        ("a\nb", "a\nb", True),
        ("{x{a,b}", "{xb", True),
        ("a}{b,c}", "a}c", True),
        ("", "a/b", True),
    ],
)
def test_a_pattern_matches(pattern: str, path: str, is_match: bool) -> None:
    assert matcher(pattern)(path) is is_match


@pytest.mark.parametrize(
    ("pattern", "sentence"),
    [
        ("../*.py", "The pattern '../*.py' must not hold `..`: say where to look by `path`."),
        ("{a,b}" * 20, "has too many alternatives: use fewer braces."),
        ("{" * (LONGEST + 1), "The pattern has 1,001 characters: use at most 1,000."),
    ],
)
def test_a_pattern_that_asks_too_much_is_refused(pattern: str, sentence: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the sentence is compared
        matcher(pattern)
    assert sentence in str(raised.value)


def test_as_many_alternatives_as_are_allowed_are_made() -> None:
    assert len(expanded("{a,b}" * 8)) == MOST


@pytest.mark.parametrize("pattern", ["*a" * 400 + "b", "**/a/" * 190 + "b", "{" * 900 + ",}" * 40])
def test_no_pattern_takes_long(pattern: str) -> None:
    """The test would not end if anything backtracked."""
    assert not matcher(pattern)("a" * 250)
    assert not matcher(pattern)("a/" * 250 + "a")


@given(st.lists(st.text("ab.", min_size=1, max_size=3), min_size=1, max_size=4))
def test_a_path_matches_itself_and_every_pattern_that_leaves_names_open(names: list[str]) -> None:
    names = [name for name in names if name not in (".", "..")] or ["a"]
    path = "/".join(names)
    assert matcher(f"./{path}")(path)
    assert matcher(f"**/{names[-1]}")(path)
    assert matcher("./" + "/".join("*" for _ in names))(path)
    assert not matcher("./" + "/".join(["*", *("*" for _ in names)]))(path)
