"""The kinds of images, and references to stored ones."""

import pytest

from perdure.events.images import detect_media_type, is_stored_image, to_data_url


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n...", "image/png"),
        (b"\xff\xd8\xff\xe0...", "image/jpeg"),
        (b"GIF87a...", "image/gif"),
        (b"GIF89a...", "image/gif"),
        (b"RIFF\n\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\n\0\0\0WAVEfmt ", None),
        (b"<svg/>", None),
        (b"BM", None),
        (b"", None),
    ],
)
def test_the_kind_of_an_image_is_told_by_its_first_bytes(data: bytes, kind: str | None) -> None:
    assert detect_media_type(data) == kind
    assert to_data_url(data).startswith(f"data:{kind or 'application/octet-stream'};base64,")


def test_a_stored_image_is_the_key_of_a_blob() -> None:
    assert is_stored_image(f"blobs/{'0a' * 32}")
    for other in ("blobs/0a", f"blobs/{'0A' * 32}", f"x/blobs/{'0a' * 32}", "https://x.org/blobs"):
        assert not is_stored_image(other)
