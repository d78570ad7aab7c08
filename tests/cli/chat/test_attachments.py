"""Files that a message names."""

from pathlib import Path

import pytest

from perdure.cli.chat.attachments import attach_files
from perdure.errors import Invalid


def test_text_without_a_file_stays_as_it_is() -> None:
    for text in ("Mail me@example.org", "@everyone, look", "@", "a @ b", "@\x00", "@" + "x" * 5000):
        assert attach_files(text, None).text == text


def test_a_name_may_have_blanks_and_a_sentence_may_end_with_it(tmp_path: Path) -> None:
    (tmp_path / "two words.txt").write_text("inside")
    folder = tmp_path / "empty"
    folder.mkdir()
    for text in (f'See @"{tmp_path}/two words.txt".', f"See @{tmp_path}/two\\ words.txt."):
        draft = attach_files(text, folder)
        assert draft.text.startswith(f"See {tmp_path}/two words.txt.\n\n<file path=")
        assert draft.remarks == (f"Attached: {tmp_path}/two words.txt",)
    assert "two words.txt" in attach_files(f"List @{tmp_path}", folder).text
    assert attach_files("See @two\\ words.txt", tmp_path).text == "See two words.txt"


def test_what_is_no_text_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Invalid, match="is no text"):
        attach_files(f"@{tmp_path}/binary", None)
    (tmp_path / "large").write_text("x" * 600_000)
    with pytest.raises(Invalid, match="600,000 bytes"):
        attach_files(f"@{tmp_path}/large", None)
    (tmp_path / "broken.png").mkdir()
    with pytest.raises(Invalid, match="cannot be read"):
        attach_files(f"@{tmp_path}/broken.png", None)
