"""What a user copies from a browser is understood in every spelling, and never shown."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipyperplexity.auth.cookies import (
    SESSION_COOKIES,
    Paste,
    as_header,
    looks_like_token,
    read_pasted,
    read_set_cookies,
    rotate,
    session_token,
)
from ipyperplexity.auth.curl import read_curl
from ipyperplexity.errors import MissingCredentialError
from ipyperplexity.net.redact import Secret
from tests.auth.signing_in import NEW, SESSION, TOKEN, shown

HEADER = f"theme=dark; {SESSION}={TOKEN}; cf_clearance=c"
URL = "https://www.perplexity.ai/rest/x?version=2.18"


def pasted(text: str) -> Paste:
    return read_pasted(Secret(text), "the text")


def reads(text: str) -> tuple[str, str]:
    """Return the token and the cookie header of a paste."""
    found = pasted(text)
    assert found.token is not None
    return found.token.reveal(), as_header(found.cookies)


SPELLINGS = {
    "header": HEADER,
    "header with its name": f"Cookie: {HEADER}",
    "lower case": f"cookie:{HEADER}",
    "quoted": f'"{HEADER}"',
    "single quotes": f"'{HEADER}'",
    "blanks and line ends": f"\n  {HEADER} \r\n",
    "byte order mark": f"\ufeff{HEADER}",
    "among other headers": f"Host: www.perplexity.ai\r\nCookie: {HEADER}\r\nAccept: a=b; c=d\r\n",
    "name and value on two lines": f"accept\n*/*\ncookie:\n{HEADER}\nuser-agent:\nx=1; y=2",
    "curl -H": f"curl '{URL}' -H 'accept: */*' -H 'cookie: {HEADER}' --compressed",
    "curl -H in double quotes": f'curl "{URL}" -H "Cookie: {HEADER}"',
    "curl --header=": f"curl --header='Cookie: {HEADER}' {URL}",
    "curl -b": f"curl {URL} -b '{HEADER}' -H 'accept: a=b'",
    "curl -b in one word": f"curl {URL} -b'{HEADER}'",
    "curl --cookie": f"curl {URL} --cookie '{HEADER}'",
    "curl --cookie=": f"curl {URL} --cookie='{HEADER}'",
    "curl -b unquoted": f"curl -b {HEADER} {URL}",
    "curl --cookie unquoted": f"curl --cookie {HEADER} -H accept:x {URL}",
    "curl --cookie= unquoted": f"curl --cookie={HEADER} {URL}",
    "curl over several lines": f"curl '{URL}' \\\n  -H 'accept: */*' \\\n  -b '{HEADER}' \\\n  --compressed\n",
    "curl over several lines, pasted into one": f"curl '{URL}' \\  -H 'accept: */*' \\  -b '{HEADER}'",
    "curl with $'...'": f"curl '{URL}' -H $'cookie: {HEADER}'",
    "curl with a prompt": f"$ curl '{URL}' -b '{HEADER}'",
    "curl.exe for cmd": f'curl.exe ^"{URL}^" ^\r\n  -H ^"accept: */*^" ^\r\n  -H ^"cookie: {HEADER}^"',
    "only the options of curl": f"-H 'accept: */*' -H 'cookie: {HEADER}'",
    "exported as JSON": json.dumps([
        {"domain": ".perplexity.ai", "name": "theme", "value": "dark", "path": "/"},
        {"domain": "www.perplexity.ai", "name": SESSION, "value": TOKEN},
        {"domain": ".perplexity.ai.example.org", "name": "pplx_jwt", "value": "of another site"},
        {"name": "cf_clearance", "value": "c"},
    ]),
}  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_cookies_are_read_from(spelling: str) -> None:
    assert reads(SPELLINGS[spelling]) == (TOKEN, HEADER)


@pytest.mark.parametrize(
    "text",
    [
        TOKEN,
        f" {TOKEN}\n",
        f'"{TOKEN}"',
        f"Bearer {TOKEN}",
        TOKEN.replace(".", "%2E"),
        "eyJ" + "a" * 20 + ".b." + "c" * 30,
    ],
)
def test_a_bare_token_is_a_token_without_cookies(text: str) -> None:
    token, cookies = reads(text)
    assert looks_like_token(token) and not cookies


@pytest.mark.parametrize(
    "text", ["eyJabc", "x" * 50, f"{TOKEN}.more", TOKEN[:39], f"{TOKEN} x", "eyJ" + "a" * 60]
)
def test_what_has_not_the_form_of_a_token_is_none(text: str) -> None:
    assert not looks_like_token(text)


@pytest.mark.parametrize("name", SESSION_COOKIES)
def test_each_name_of_the_session_cookie_is_known(name: str) -> None:
    assert reads(f"a=b; {name}=opaque") == ("opaque", f"a=b; {name}=opaque")


def test_parts_are_joined_for_the_token_and_sent_as_they_are() -> None:
    text = f"{SESSION}.1=bbb; x=y; {SESSION}.0=eyJaaa"
    assert reads(text) == ("eyJaaabbb", text)
    eleven = "; ".join(f"{SESSION}.{n}={n}." for n in range(11))
    assert reads(eleven)[0] == "0.1.2.3.4.5.6.7.8.9.10."


def test_a_token_is_decoded_and_its_cookie_is_not() -> None:
    text = f"{SESSION}=eyJ%2Ea%2Bb"
    assert reads(text) == ("eyJ.a+b", text)
    assert reads(f'{SESSION}="quoted"') == ("quoted", f'{SESSION}="quoted"')


def test_a_curl_command_with_a_quote_in_a_cookie_is_read_as_a_shell_reads_it() -> None:
    text = rf"curl '{URL}' -b $'a=it\'s\u0021\x21\041; {SESSION}={TOKEN}'"
    assert reads(text) == (TOKEN, f"a=it's!!!; {SESSION}={TOKEN}")


@pytest.mark.parametrize(("text", "says"), [
    ("", "nothing in it"),
    ("  \n", "nothing in it"),
    ("a=b; cf_clearance=c", "no session cookie"),
    (f"{SESSION}.1=second", "no session cookie"),
    (f"{SESSION}=", "no session cookie"),
    (f"curl '{URL}' -H 'accept: */*'", "has no cookies"),
    (f"curl -b cookies.txt '{URL}'", "has no cookies"),
    (f"curl 'https://chat.example.org/' -b '{SESSION}={TOKEN}'", "for chat.example.org"),
    (f"curl 'https://perplexity.ai.example.org/' -b '{SESSION}={TOKEN}'", "perplexity.ai.example.org"),
    (f"curl 'https://evilperplexity.ai/' -b '{SESSION}={TOKEN}'", "for evilperplexity.ai"),
    ("hello", "neither cookies"),
    ("[1, 2", "neither cookies"),
    ("[" * 100_000, "neither cookies"),
    ("x" * 300_000, "262,144"),
])  # fmt: skip
def test_what_holds_no_session_is_explained(text: str, says: str) -> None:
    with pytest.raises(MissingCredentialError, match="the text: ") as raised:
        pasted(text)
    assert says in raised.value.message and "developer tools" in str(raised.value)
    assert TOKEN not in shown(raised.value)


def test_what_cannot_stand_in_a_header_is_left_out() -> None:
    assert reads(f"é=1; a=é; b=c\x00; bad name=1; {SESSION}=t\r\n") == ("t", f"{SESSION}=t")


NAMES = st.text(string.ascii_letters + string.digits + "_-.", min_size=1, max_size=12)
# A cookie's value, as browsers keep them: no blanks at its ends, no ; and no control characters.
VALUES = st.text(
    "".join(chr(n) for n in range(0x21, 0x7F) if chr(n) not in ";'\"\\^$"), max_size=20
)
TOKENS = st.text(string.ascii_letters + string.digits + "_-.", min_size=1, max_size=60)


@given(st.lists(st.tuples(NAMES, VALUES), max_size=5), TOKENS)
def test_any_cookies_are_the_same_in_every_spelling(
    others: list[tuple[str, str]], token: str
) -> None:
    pairs = [(name, value) for name, value in others if name not in SESSION_COOKIES]
    header = "; ".join(f"{name}={value}" for name, value in [*pairs, (SESSION, token)])
    expected = (token, header)
    for text in (
        f"Cookie: {header}",
        f"curl '{URL}' -H 'cookie: {header}'",
        f'curl "{URL}" --cookie="{header}"',
        f"curl '{URL}' \\\n -b $'{header}' \\\n --compressed",
        json.dumps({"cookies": [{"name": n, "value": v} for n, v in [*pairs, (SESSION, token)]]}),
    ):
        assert reads(text) == expected


@given(TOKENS, st.integers(1, 20))
def test_a_token_cut_into_parts_is_whole_again(token: str, size: int) -> None:
    parts = [token[i : i + size] for i in range(0, len(token), size)][:100]
    header = "; ".join(f"{SESSION}.{n}={part}" for n, part in reversed(list(enumerate(parts))))
    assert reads(header) == ("".join(parts), header)


PIECES = st.sampled_from(
    [
        "curl ",
        "-b ",
        "-H ",
        "'",
        '"',
        "$'",
        "\\",
        "^",
        '^"',
        "cookie:",
        "=",
        ";",
        "\n",
        " ",
        SESSION,
        TOKEN,
        "{",
        "[",
        "\u2028",
        "%E9",
    ]
)


@given(st.lists(PIECES | st.text(max_size=4), max_size=25).map("".join))
def test_any_text_is_read_or_refused_in_a_sentence(text: str) -> None:
    try:
        found = pasted(text)
    except MissingCredentialError:
        return
    assert found.token
    header = as_header(found.cookies)
    assert header.isascii() and (header.isprintable() or not header)
    assert read_curl(text) is not None


# --- what a reply sets ------------------------------------------------------------------------


def rotated(cookies: str, *lines: str) -> str:
    before = read_pasted(Secret(cookies), "here").cookies
    return as_header(rotate(before, read_set_cookies(lines)))


def test_a_renewed_session_replaces_its_cookie_and_no_other() -> None:
    line = f"{SESSION}={NEW}; Path=/; Expires=Wed, 01 Jan 2098 00:00:00 GMT; Secure; HttpOnly"
    assert rotated(HEADER, line, "theme=light; Path=/", "__cf_bm=1") == HEADER.replace(TOKEN, NEW)


@pytest.mark.parametrize("line", [
    f"{SESSION}=; Path=/",
    f'{SESSION}=""; Path=/',
    f"{SESSION}=deleted; Max-Age=0",
    f"{SESSION}=deleted; max-age=-1",
    f"{SESSION}=deleted; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
    f"{SESSION}=deleted; expires=Thu, 01-Jan-1970 00:00:00 GMT",
    f"{SESSION}=a\x01b",
    "garbage", "=", "", ";;",
])  # fmt: skip
def test_a_session_that_is_taken_away_is_kept(line: str) -> None:
    assert rotated(HEADER, line) == HEADER


def test_parts_and_a_whole_cookie_replace_each_other() -> None:
    whole, parts = f"a=b; {SESSION}=one", f"a=b; {SESSION}.0=x; {SESSION}.1=y"
    assert (
        rotated(whole, f"{SESSION}.0=p", f"{SESSION}.1=q") == f"a=b; {SESSION}.0=p; {SESSION}.1=q"
    )
    assert rotated(parts, f"{SESSION}=two") == f"a=b; {SESSION}=two"
    assert (
        rotated(parts, f"{SESSION}.0=p; Path=/", f"{SESSION}.1=q")
        == f"a=b; {SESSION}.0=p; {SESSION}.1=q"
    )
    shorter = [f"{SESSION}.0=p", f"{SESSION}.1=; Max-Age=0"]
    assert rotated(parts, *shorter) == f"a=b; {SESSION}.0=p"


def test_lines_that_a_library_has_joined_are_told_apart() -> None:
    line = f"a=1; Expires=Wed, 01 Jan 2098 00:00:00 GMT, {SESSION}={NEW}; Path=/, b=2"
    read = read_set_cookies([line])
    assert [(c.name, c.value.reveal(), c.expired) for c in read] == [
        ("a", "1", False), (SESSION, NEW, False), ("b", "2", False)
    ]  # fmt: skip


@given(st.lists(st.text(max_size=30) | st.just(f"{SESSION}=x"), max_size=4))
def test_no_set_cookie_line_fails(lines: list[str]) -> None:
    for cookie in read_set_cookies(lines):
        assert cookie.name and cookie.value.reveal().isascii()


def test_the_usual_name_counts_before_the_others() -> None:
    cookies = read_pasted(Secret(f"pplx_jwt=later; {SESSION}=first"), "here").cookies
    token = session_token(cookies)
    assert token is not None and token.reveal() == "first"
