"""Any file is a tape, or an error that says where it is none."""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity.errors import ConfigurationError, PerplexityWarning
from ipyperplexity.net.redact import Secret
from ipyperplexity.store.tape_file import TapedExchange, TapedReply, TapeWriter, read_tape
from ipyperplexity.tapes.asked import key_of, question_of
from ipyperplexity.tapes.masking import kept_headers, mask_body, mask_value

HEAD = {"format": "ipyperplexity tape", "version": 1}
REQUEST = {"asked": "Why?", "request": {"method": "POST", "path": "/v1/responses", "body": {}}}
STATUS = {"ms": 1, "status": 200, "headers": {}}
END = {"ms": 9, "end": "complete"}


def write(path: Path, *lines: Any) -> Path:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n", "utf-8")
    return path


REPLIES = st.builds(
    TapedReply,
    status=st.integers(100, 599),
    headers=st.dictionaries(st.sampled_from(["content-type", "retry-after"]), st.text()),
    began=st.integers(0, 10_000).map(lambda ms: ms / 1000),
    pieces=st.lists(
        st.tuples(st.integers(0, 10_000).map(lambda ms: ms / 1000), st.binary(min_size=1))
    ).map(tuple),
    end=st.sampled_from(["complete", "broken", "timeout"]),
    ended=st.integers(0, 10_000).map(lambda ms: ms / 1000),
    detail=st.text(),
)
BODIES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
EXCHANGES = st.builds(
    TapedExchange,
    method=st.sampled_from(["GET", "POST"]),
    path=st.text(),
    body=BODIES,
    asked=st.text(),
    reply=REPLIES,
)


@given(st.lists(EXCHANGES, max_size=4))
@settings(deadline=None, max_examples=60)
def test_what_is_written_is_what_is_read(exchanges: list[TapedExchange]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tape"
        writer = TapeWriter(path)
        for exchange in exchanges:
            writer.write(exchange)
        writer.close()
        assert read_tape(path) == exchanges


@given(
    st.binary()
    | st.text().map(str.encode)
    | st.lists(BODIES).map(
        lambda lines: b"\n".join(json.dumps(line).encode() for line in (HEAD, *lines))
    )
)
@settings(deadline=None, max_examples=300)
def test_any_bytes_are_a_tape_or_an_error_that_names_the_line(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "a.tape"
        path.write_bytes(data)
        try:
            read_tape(path)
        except ConfigurationError as error:
            assert "a.tape, line " in error.message or "is of version" in error.message


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["{oops"], "line 1: this is no tape"),
        ([{"format": "something else"}], "line 1: this is no tape"),
        ([HEAD, REQUEST, STATUS, "{oops", END], "line 4: this is damaged"),
        ([HEAD, REQUEST, STATUS, {"ms": -5, "text": "x"}, END], "line 4: .* no number from 0 up"),
        ([HEAD, REQUEST, STATUS, {"ms": 2, "base64": "%%"}, END], "line 4: .* neither text nor"),
        ([HEAD, REQUEST, STATUS, {"ms": 2, "surprise": 1}, END], "line 4: .* nobody knows"),
        ([HEAD, STATUS], "line 2: .* no request before it"),
        ([HEAD, {"request": {"method": "GET"}}], "line 2: .* no method and path"),
        ([HEAD, REQUEST, END], "line 3: .* without a status"),
        ([HEAD, REQUEST, STATUS, REQUEST, END], "line 4: .* nobody knows"),
        ([{**HEAD, "version": 9}], "is of version 9"),
    ],
)
def test_a_damaged_tape_says_which_line(tmp_path: Path, lines: list[Any], says: str) -> None:
    path = write(tmp_path / "lesson.tape", *lines)
    with pytest.raises(ConfigurationError, match=says):
        read_tape(path)


def test_a_last_answer_without_an_end_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "lesson.tape", HEAD, REQUEST, STATUS, END, REQUEST, STATUS)
    with path.open("a") as file:
        file.write('{"ms": 3, "te')
    with pytest.warns(PerplexityWarning, match="the last answer has no end"):
        assert len(read_tape(path)) == 1


def test_a_tape_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        read_tape(tmp_path / "none.tape")
    with pytest.raises(ConfigurationError, match=r"cannot be (read|written): Is a directory"):
        TapeWriter(tmp_path)


@given(st.text())
def test_a_masked_body_is_as_long_as_it_was(text: str) -> None:
    body = text.encode("utf-8", "surrogatepass")
    assert len(mask_body(body)) == len(body)


@pytest.mark.parametrize(
    "secret",
    [
        "pplx-abcdef0123456789",
        "Bearer abcdefgh12345678",
        "ann.b+c@school.example.org",
        "eyJhbGciOiJkaXIi.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl",
        '"read_write_token": "s3cr3t"',
        r"\"read_write_token\":\"s3cr3t\"",
    ],
)
def test_secrets_are_masked_and_the_rest_stays(secret: str) -> None:
    body = f"before {secret} after".encode()
    masked = mask_body(body)
    assert len(masked) == len(body) and masked != body and b"s3cr3t" not in masked
    assert masked.startswith(b"before ") and masked.endswith(b" after")
    assert mask_body(b"a kx-secret of ours", (Secret("kx-secret"),)) == b"a ********* of ours"
    assert mask_value({"a": [f"x {secret}"]})["a"][0].startswith("x ")


def test_only_headers_that_matter_are_kept() -> None:
    headers = {"Content-Type": "text/html", "Set-Cookie": "a=b", "X-Other": "1", "Retry-After": "2"}
    assert kept_headers(headers) == {"content-type": "text/html", "retry-after": "2"}


def test_requests_that_ask_the_same_have_the_same_key() -> None:
    one = {"input": "Why?", "stream": True, "model": "m", "params": {"frontend_uuid": "1"}}
    other = {"model": "m", "params": {"frontend_uuid": "2"}, "input": "Why?"}
    assert key_of("POST", "/x", one) == key_of("POST", "/x", other)
    assert key_of("POST", "/x", one) != key_of("POST", "/x", {**other, "model": "n"})
    assert question_of("POST", "/search", {"query": ["a", "b"]}) == "a; b"
    assert question_of("GET", "/v1/models", None) == "GET /v1/models"
