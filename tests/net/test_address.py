"""A base URL is checked before a key is ever sent to it."""

from __future__ import annotations

import pytest

from ipyperplexity.errors import ConfigurationError
from ipyperplexity.net.address import check_base_url, is_loopback, join


@pytest.mark.parametrize(("given", "url"), [
    ("https://api.perplexity.ai", "https://api.perplexity.ai"),
    (" https://api.perplexity.ai/ \n", "https://api.perplexity.ai"),
    ("https://x.example:8443/a/b//", "https://x.example:8443/a/b"),
    ("http://localhost:8000", "http://localhost:8000"),
    ("http://127.0.0.1", "http://127.0.0.1"),
    ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
    ("HTTP://LOCALHOST:1", "HTTP://LOCALHOST:1"),
    ("https://x.example/api/v1/chat/completions", "https://x.example/api/v1"),
    ("https://x.example/chat/completions/", "https://x.example"),
    ("https://api.perplexity.ai/v1/responses", "https://api.perplexity.ai/v1"),
    ("https://x.example/mychat/completions", "https://x.example/mychat/completions"),
    ("https://x.example/chat", "https://x.example/chat"),
])  # fmt: skip
def test_a_good_address_is_taken(given: str, url: str) -> None:
    assert check_base_url(given) == url


@pytest.mark.parametrize("given", [
    "", " ", "x", "api.perplexity.ai", "//x.example", "https://", "https:///v1", "file:///etc/passwd",
    "javascript:alert(1)", "https://x.example:port", "https://x.example:99999", "https://x.example:0",
    "https://[::1", "https://a b.example", "https://x.example/a b", "https://x.example\x00",
    "https://x.example/\u202eabc", "https://user@x.example", "https://u:p@x.example",
    "https://x.example?key=1", "https://x.example/#a", "http://x.example", "http://10.0.0.1",
    "http://127.0.0.1.evil.example", "http://localhost.evil.example", "http://[::2]", "http://0.0.0.0",
    None, 5, b"https://x.example",
])  # fmt: skip
def test_any_other_is_refused(given: object) -> None:
    with pytest.raises(ConfigurationError, match="base_url") as raised:
        check_base_url(given)  # type: ignore[arg-type]
    assert raised.value.field == "base_url" and raised.value.hint


@pytest.mark.parametrize("path", ["/chat/completions", "/v1/responses"])
def test_the_address_of_the_call_itself_may_be_given(path: str) -> None:
    base = check_base_url(f"https://x.example/v1{path.removeprefix('/v1')}")
    assert join(base, path) == f"https://x.example/v1{path.removeprefix('/v1')}"


def test_plain_http_to_another_machine_can_be_allowed_on_purpose() -> None:
    assert check_base_url("http://10.0.0.1:80", allow_http=True) == "http://10.0.0.1:80"


@pytest.mark.parametrize(("host", "answer"), [
    ("localhost", True), ("LOCALHOST", True), ("a.localhost", False), ("127.8.9.1", True), ("::1", True),
    ("[::1]", True), ("", False), ("localhost.example", False), ("1.2.3.4", False), ("::", False),
    ("notlocalhost", False),
])  # fmt: skip
def test_loopback_is_this_machine_only(host: str, answer: bool) -> None:
    assert is_loopback(host) is answer


@pytest.mark.parametrize(("base", "url"), [
    ("https://x.example", "https://x.example/v1/responses"),
    ("https://x.example/v1", "https://x.example/v1/responses"),
    ("https://x.example/api/v1", "https://x.example/api/v1/responses"),
    ("https://x.example/v10", "https://x.example/v10/v1/responses"),
    ("https://x.example/av1", "https://x.example/av1/v1/responses"),
])  # fmt: skip
def test_a_path_is_joined_once(base: str, url: str) -> None:
    assert join(base, "/v1/responses") == url
