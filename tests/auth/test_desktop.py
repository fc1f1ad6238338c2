"""The desktop app's login, read by the system's own command; here a stand-in for it on the PATH."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from ipyperplexity.auth.desktop import find_desktop_login
from tests.auth.signing_in import TOKEN

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a shell script")


@pytest.fixture
def defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return the script that stands in for ``defaults``; it notes its arguments."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder / "defaults"


def answer(script: Path, body: str) -> None:
    script.write_text(f'#!/bin/sh\necho "$@" > {script.parent}/asked\n{body}\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize("token", [TOKEN, "opaque-0123"])
def test_the_token_of_the_app_is_read(defaults: Path, token: str) -> None:
    answer(defaults, f"echo '{token}'")
    login = find_desktop_login("darwin")
    assert login is not None and login.token is not None
    assert login.token.reveal() == token and not login.cookies
    assert login.origin == "the Perplexity desktop app"
    assert (defaults.parent / "asked").read_text() == "read ai.perplexity.mac authToken\n"


@pytest.mark.parametrize(
    "body",
    [
        "echo",
        "echo '(null)'",
        "echo token; exit 1",
        "printf 'a b'",
        "printf 'a\\nb'",
        "printf '\\377\\376'",
        "kill -9 $$",
    ],
)
def test_an_app_without_a_token_is_none(defaults: Path, body: str) -> None:
    answer(defaults, body)
    assert find_desktop_login("darwin") is None
    assert (defaults.parent / "asked").exists()


def test_a_system_without_the_command_is_none(defaults: Path) -> None:
    assert find_desktop_login("darwin") is None
    defaults.write_text("not executable")
    assert find_desktop_login("darwin") is None


@pytest.mark.parametrize("platform", ["linux", "win32", "emscripten"])
def test_other_systems_are_not_asked(defaults: Path, platform: str) -> None:
    answer(defaults, f"echo '{TOKEN}'")
    assert find_desktop_login(platform) is None
    assert not (defaults.parent / "asked").exists()


@pytest.mark.parametrize("name", ["PERPLEXITY_NO_BORROW", "PI_AUTH_NO_BORROW"])
def test_no_borrow_leaves_the_app_alone(
    defaults: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer(defaults, f"echo '{TOKEN}'")
    monkeypatch.setenv(name, "1")
    assert find_desktop_login("darwin") is None
    assert not (defaults.parent / "asked").exists()
