"""Pictures that go with a question: what is taken, and what is refused before it is sent."""

from __future__ import annotations

import base64
import io
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.images import MAX_IMAGE_BYTES, image_url
from ipyperplexity.question import Question

PNG = b"\x89PNG\r\n\x1a\n" + b"rest"


def decoded(url: str) -> tuple[str, bytes]:
    head, _, data = url.partition(",")
    return head, base64.b64decode(data)


def refusal(image: Any) -> InvalidRequestError:
    with pytest.raises(InvalidRequestError) as caught:
        image_url(image)
    error = caught.value
    assert error.field == "images"
    assert error.__context__ is None and error.__cause__ is None
    assert "a path" in error.message and "bytes" in error.message  # what is allowed
    assert len(error.message) < 600
    return error


@pytest.mark.parametrize(
    "url",
    ["https://example.org/map.png", "HTTPS://example.org/a?b=c", "data:image/png;base64,AAAA"],
)
def test_an_address_that_the_service_can_read_goes_as_it_is(url: str) -> None:
    assert image_url(url) == url


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"BM12", "image/bmp"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
def test_bytes_are_known_by_how_they_begin(data: bytes, mime: str) -> None:
    for given in (data, bytearray(data), memoryview(data)):
        assert decoded(image_url(given)) == (f"data:{mime};base64", data)


def test_a_file_is_read_at_once_and_its_content_decides_over_its_name(tmp_path: Path) -> None:
    file = tmp_path / "wrong.jpg"
    file.write_bytes(PNG)
    for given in (file, str(file)):
        assert decoded(image_url(given)) == ("data:image/png;base64", PNG)


def test_a_path_may_begin_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "map.png").write_bytes(PNG)
    assert decoded(image_url("~/map.png"))[1] == PNG


def test_a_pil_image_becomes_a_png() -> None:
    image = pytest.importorskip("PIL.Image").new("RGB", (2, 3), "red")
    mime, data = decoded(image_url(image))
    assert mime == "data:image/png;base64"
    assert pytest.importorskip("PIL.Image").open(io.BytesIO(data)).size == (2, 3)


def test_a_matplotlib_figure_and_its_axes_become_the_same_picture() -> None:
    figure_module = pytest.importorskip("matplotlib.figure")
    figure = figure_module.Figure(figsize=(1, 1))
    axes = figure.subplots()
    axes.plot([1, 2])
    for given in (figure, axes):
        mime, data = decoded(image_url(given))
        assert mime == "data:image/png;base64"
        assert data.startswith(b"\x89PNG")


def test_several_pictures_keep_their_order() -> None:
    urls = ("https://a.example/1.png", "https://a.example/2.png")
    assert Question("What is this?", images=list(urls)).images == urls
    assert Question("What is this?", images=urls[0]).images == urls[:1]
    assert Question("What is this?", images=None).images == ()


class Ghost:
    def save(self, file: Any, **details: Any) -> None:
        raise ValueError("no ink left")


@pytest.mark.parametrize(
    ("image", "word"),
    [
        ("/no/such/map.png", "No such file"),
        ("~nobody-at-all/map.png", "~nobody-at-all"),
        ("a\0b.png", "null"),
        ("http://example.org/map.png", "https:"),
        ("ftp://example.org/map.png", "https:"),
        ("https://", "https:"),
        ("https://[", "https:"),
        ("https://exa mple.org/a.png", "https:"),
        ("data:image/png", "holds nothing"),
        (b"", "empty"),
        (b"not a picture", "does not look like a picture"),
        (3, "none of these"),
        (None, "none of these"),
        (Ghost(), "no ink left"),
        (Ghost, "none of these"),
    ],
)
def test_what_is_no_picture_is_refused_with_the_reason(image: Any, word: str) -> None:
    assert word in refusal(image).message


def test_a_text_file_is_refused_even_with_a_folder_or_a_device_beside_it(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("hello")
    assert "does not look like a picture" in refusal(notes).message
    assert "not a file" in refusal(tmp_path).message
    if Path("/dev/zero").exists():
        assert "not a file" in refusal("/dev/zero").message


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root reads everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "map.png"
    file.write_bytes(PNG)
    file.chmod(0)
    assert "ermission" in refusal(file).message


def test_a_picture_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "map.png"
    with file.open("wb") as stream:
        stream.write(PNG)
        stream.truncate(MAX_IMAGE_BYTES + 1)
    assert f"it has over {MAX_IMAGE_BYTES:,} bytes" in refusal(file).message
    assert f"{MAX_IMAGE_BYTES:,}" in refusal(PNG + bytes(MAX_IMAGE_BYTES)).message


def test_pictures_that_are_too_large_together_are_refused() -> None:
    half = "data:image/png;base64," + "A" * (20 * 2**20)
    with pytest.raises(InvalidRequestError, match="2 pictures of 40 MiB") as caught:
        Question("What is this?", images=[half, half])
    assert caught.value.field == "images"


def test_no_message_shows_what_is_inside_bytes() -> None:
    assert "secret" not in str(refusal(b"secret"))
