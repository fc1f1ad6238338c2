"""What looks like a key or a session token is masked, wherever it stands and however long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipyperplexity.secret_patterns import hide_secrets, hide_secrets_in

HEAD = "eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0"
TOKENS = [
    f"{HEAD}.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",  # three parts, signed
    f"{HEAD}..aXY.Y2lwaGVydGV4dA.dGFn",  # five, encrypted: the second is empty
    f"{HEAD}.a-b_c.d-e_f",
]


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize(
    "around", ["{}", "token={};", '"{}"', "Cookie: a={}\n", "x-{}", "({})", "eyJ {} eyJ", "a.b.{}"]
)
def test_a_session_token_is_masked(token: str, around: str) -> None:
    assert hide_secrets(around.format(token)) == around.format("***")
    assert hide_secrets_in({token: [token]}) == {"***": ["***"]}


@pytest.mark.parametrize("text", [
    "eyJ", "eyJabc.d.e", HEAD, f"{HEAD}.one", f"x{HEAD}.a.b", "a.b.c.d", "See eyJs.", "1.2.3",
])  # fmt: skip
def test_what_is_no_token_is_left_alone(text: str) -> None:
    assert hide_secrets(text) == text


@given(st.text("eyJab-_. ", max_size=60))
def test_nothing_that_looks_like_a_token_gets_through(text: str) -> None:
    shown = hide_secrets(text)
    assert hide_secrets(shown) == shown
    for token in TOKENS:
        assert token not in hide_secrets(f"{text}={token}")


HOSTILE = ["eyJ-", "eyJ", "a", "-", ".", "eyJ.", "a.", "eyJaaaaaaaaaaa.", "eyJ-eyJ-eyJ-eyJ. ", "eyJaaaaaaaaaaa-."]  # fmt: skip


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_text_of_a_megabyte_takes_no_time(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    hide_secrets(f"eyJ {text}")
