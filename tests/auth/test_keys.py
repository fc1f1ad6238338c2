"""The API key is found anew for each question, checked for its form, and never shown."""

from __future__ import annotations

import pickle
import traceback

import pytest

from ipyperplexity.auth.keys import as_secret, find_key, require_key
from ipyperplexity.errors import ConfigurationError, MissingCredentialError
from ipyperplexity.net.redact import BearerAuth, Secret, redact, redact_json

KEY = "pplx-0123456789abcdef"


@pytest.mark.parametrize("given", [KEY, f"  {KEY}\n", Secret(KEY)])
def test_a_key_is_taken_without_blanks_around_it(given: object) -> None:
    secret = as_secret(given, "here")
    assert secret is not None and secret.reveal() == KEY


@pytest.mark.parametrize("given", [None, "", "  \n", Secret("")])
def test_an_empty_key_is_none(given: object) -> None:
    assert not as_secret(given, "here")


@pytest.mark.parametrize(
    "given", [f"{KEY} x", f"{KEY}\nx", f"{KEY}é", f"{KEY}\x00", f"“{KEY}”", 5, b"key", [KEY]]
)
def test_what_cannot_be_a_key_is_refused_without_being_shown(given: object) -> None:
    for value in (given, Secret(given) if isinstance(given, str) else given):
        with pytest.raises(ConfigurationError, match="from here") as raised:
            as_secret(value, "here")
        assert KEY not in str(raised.value)
        shown = traceback.TracebackException.from_exception(raised.value, capture_locals=True)
        # The frame of this test holds the key; those of the package do not.
        assert all(
            KEY not in str(frame.locals) for frame in shown.stack if __file__ != frame.filename
        )


def test_the_order_is_argument_name_alias(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_key() is None
    for name, origin in (
        ("PPLX_API_KEY", "PPLX_API_KEY"),
        ("PERPLEXITY_API_KEY", "PERPLEXITY_API_KEY"),
    ):
        monkeypatch.setenv(name, f"key-of-{name}")
        found = find_key()
        assert found is not None
        assert (found.origin, found.secret.reveal()) == (origin, f"key-of-{name}")
    assert require_key(Secret(KEY)).secret.reveal() == KEY
    assert KEY not in repr(require_key(Secret(KEY)))


def test_an_empty_variable_does_not_hide_the_alias(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERPLEXITY_API_KEY", " ")
    monkeypatch.setenv("PPLX_API_KEY", KEY)
    assert require_key().origin == "PPLX_API_KEY"


def test_no_key_says_what_to_do() -> None:
    with pytest.raises(MissingCredentialError, match="demo"):
        require_key()


def test_a_secret_shows_itself_nowhere() -> None:
    secret = Secret(KEY)
    shown = f"{secret} {secret!r} {secret:>40} {[secret]} {BearerAuth(secret)} %s" % secret
    assert KEY not in shown
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises((ConfigurationError, TypeError)):
            pickle.dumps(secret, protocol)


@pytest.mark.parametrize(("text", "clean"), [
    (f"bad key {KEY}.", "bad key ***."),
    ("Authorization: Bearer abcdefghij0123", "Authorization: Bearer ***"),
    ("bearer of good news", "bearer of good news"),
    ("my own-secret here", "my *** here"),
    ("pplx-x is short", "pplx-x is short"),
])  # fmt: skip
def test_keys_are_hidden_in_other_peoples_text(text: str, clean: str) -> None:
    assert redact(text, [Secret("own-secret"), None]) == clean
    assert redact_json({text: [text, 1, None, {"a": text}]}, (Secret("own-secret"),)) == {
        clean: [clean, 1, None, {"a": clean}]
    }
