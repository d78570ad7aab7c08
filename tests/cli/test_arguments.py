"""Parsers of arguments of the command line."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from perdure.cli.arguments import load_images, parse_assignments
from perdure.cli.moments import parse_moment
from perdure.errors import Invalid

PNG = b"\x89PNG\r\n\x1a\n"
DATA_URL = "data:image/png;base64,iVBORw0KGgo="
NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("90m", "2030-01-31T13:30:00.000000"),
        ("1.5h", "2030-01-31T13:30:00.000000"),
        ("2d", "2030-02-02T12:00:00.000000"),
        ("2030-01-31T14:00", "2030-01-31T14:00:00.000000"),
        ("2030-01-31T14:00+01:00", "2030-01-31T13:00:00.000000"),
    ],
)
def test_a_deadline_is_a_duration_from_now_or_a_date(text: str, at: str) -> None:
    assert parse_moment(text, NOW) == at
    assert parse_moment(text, NOW.astimezone(tz=None)) == at


@pytest.mark.parametrize("text", ["soon", "", "2030-01-31T11:00", "-1h", "9999999999999d"])
def test_a_deadline_in_the_past_or_unreadable_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        parse_moment(text, NOW + timedelta())


def test_assignments_have_nested_keys_and_json_values() -> None:
    values = ["limits.max_iterations=50", "limits.max_budget=1.5", "model=openai/x", 'tags=["a"]']
    assert parse_assignments(values) == {
        "limits": {"max_iterations": 50, "max_budget": 1.5},
        "model": "openai/x",
        "tags": ["a"],
    }
    for bad in (["limits"], ["=1"], ["a..b=1"], ["a=1", "a=2"], ["a=1", "a.b=2"]):
        with pytest.raises(Invalid):
            parse_assignments(bad)


def test_an_image_is_an_address_or_a_file_that_is_one_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "dot.txt").write_bytes(PNG)
    values = ["https://x.org/cat.png", str(tmp_path / "dot.txt"), DATA_URL]
    assert load_images(values) == ("https://x.org/cat.png", PNG, PNG)
    (tmp_path / "words.png").write_text("words")
    (tmp_path / "drawing.svg").write_text("<svg/>")
    for bad, reason in (
        ("words.png", "PNG, JPEG, GIF or WebP"),
        ("drawing.svg", "PNG, JPEG, GIF or WebP"),
        ("no.png", "cannot be read"),
        ("", "cannot be read"),
    ):
        with pytest.raises(Invalid) as refused:
            load_images([str(tmp_path / bad)])
        assert reason in f"{refused.value} {refused.value.hint}"
    with pytest.raises(Invalid, match="no base64"):
        load_images(["data:image/png,raw"])


def test_an_image_above_the_limit_is_refused_with_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "photo.png"
    path.write_bytes(PNG + bytes(5_242_880 - len(PNG)))
    assert len(load_images([str(path)])) == 1
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(Invalid, match="5,242,881 bytes, and the limit for an image is 5,242,880"):
        load_images([str(path)])
