"""The stored key: in the keyring if there is one, else in a file for its owner alone."""

from __future__ import annotations

import os
import stat
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import null

from ipyperplexity.auth.key_store import delete_key, key_file, load_key, save_key
from ipyperplexity.auth.keys import find_key, require_key
from ipyperplexity.errors import ConfigurationError, MissingCredentialError, PerplexityWarning
from ipyperplexity.net.redact import Secret
from tests.auth.signing_in import KEY, shown


class MemoryKeyring(KeyringBackend):
    """A keyring that counts how often it is asked, and fails when it is told to."""

    priority: ClassVar[Any] = 5
    name = "Memory"

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.asked = 0
        self.broken = False

    def _ask(self) -> None:
        self.asked += 1
        if self.broken:
            raise OSError(f"locked, says a library that quotes {KEY}")

    def get_password(self, service: str, username: str) -> str | None:
        self._ask()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._ask()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._ask()
        del self.kept[service, username]


class PlainFileKeyring(MemoryKeyring):
    priority: ClassVar[Any] = 0.5


@pytest.fixture
def ring() -> Iterator[MemoryKeyring]:
    ring = MemoryKeyring()
    before = keyring.get_keyring()
    keyring.set_keyring(ring)
    yield ring
    keyring.set_keyring(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def stored() -> str | None:
    found = load_key()
    return found[0].reveal() if found else None


def test_without_a_keyring_the_key_is_in_a_private_file(home: Path) -> None:
    assert stored() is None
    assert save_key(Secret(KEY)) == f"the file {key_file()}"
    assert stored() == KEY
    assert key_file().parent == home
    assert (mode(key_file()), mode(home)) == (0o600, 0o700)
    credential = find_key()
    assert credential is not None and credential.origin == f"the file {key_file()}"
    assert KEY not in repr(credential)


def test_with_a_keyring_the_file_holds_no_key(ring: MemoryKeyring) -> None:
    assert save_key(Secret(KEY)) == "the system's keyring (Memory)"
    assert KEY not in key_file().read_text()
    assert list(ring.kept.values()) == [KEY]
    credential = find_key()
    assert credential is not None and credential.secret.reveal() == KEY
    assert credential.origin == "the system's keyring (Memory)"


def test_the_keyring_is_asked_once_in_a_process_and_anew_after_a_change(
    ring: MemoryKeyring,
) -> None:
    save_key(Secret(KEY))
    ring.asked = 0
    assert [stored() for _ in range(5)] == [KEY] * 5
    assert ring.asked == 1
    save_key(Secret("pplx-another"))
    assert stored() == "pplx-another"


def test_the_keyring_is_not_touched_if_no_key_was_put_there(
    ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_key() is None
    monkeypatch.setenv("PERPLEXITY_API_KEY", KEY)
    assert require_key().origin == "PERPLEXITY_API_KEY"
    assert ring.asked == 0


def test_a_variable_comes_before_the_stored_key(
    ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_key(Secret(KEY))
    ring.asked = 0
    monkeypatch.setenv("PPLX_API_KEY", "pplx-of-the-variable")
    assert require_key().secret.reveal() == "pplx-of-the-variable"
    assert require_key(Secret("pplx-given")).secret.reveal() == "pplx-given"
    assert ring.asked == 0


@pytest.mark.parametrize("backend", [null.Keyring, PlainFileKeyring])
def test_a_keyring_that_keeps_nothing_or_hides_nothing_is_not_used(backend: Any, ring: Any) -> None:
    keyring.set_keyring(backend())
    assert save_key(Secret(KEY)).startswith("the file")
    assert stored() == KEY


def test_a_keyring_that_fails_is_replaced_by_the_file(ring: MemoryKeyring) -> None:
    ring.broken = True
    assert save_key(Secret(KEY)).startswith("the file")
    assert stored() == KEY


def test_a_keyring_that_fails_later_is_named_and_not_quoted(ring: MemoryKeyring) -> None:
    save_key(Secret(KEY))
    ring.broken = True
    with pytest.raises(ConfigurationError, match=r"keyring.*OSError") as raised:
        find_key()
    assert KEY not in shown(raised.value) and "PERPLEXITY_API_KEY" in str(raised.value)
    ring.broken = False
    assert stored() == KEY


def test_a_key_that_was_deleted_in_the_keyring_is_none(ring: MemoryKeyring) -> None:
    save_key(Secret(KEY))
    ring.kept.clear()
    with pytest.raises(MissingCredentialError, match="login"):
        require_key()


def test_deleting_takes_the_key_from_the_keyring_and_the_file(ring: MemoryKeyring) -> None:
    save_key(Secret(KEY))
    assert stored() == KEY
    assert delete_key() and not ring.kept and stored() is None
    assert not delete_key()
    keyring.set_keyring(null.Keyring())
    save_key(Secret(KEY))
    assert delete_key() and stored() is None
    assert [path.name for path in key_file().parent.iterdir()] in ([], [".api-key.json.lock"])


def test_a_key_that_stays_in_the_keyring_is_told(ring: MemoryKeyring) -> None:
    save_key(Secret(KEY))
    ring.broken = True
    with pytest.raises(
        ConfigurationError, match="still in the system's keyring: OSError"
    ) as raised:
        delete_key()
    assert KEY not in shown(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '"x"',
        "{}",
        '{"place": "file"}',
        '{"key": 5}',
        '{"place": "file", "key": ""}',
        "\x00",
        b"\xff\xfe",
    ],
)
def test_a_damaged_file_is_set_aside_with_a_warning(text: str | bytes, home: Path) -> None:
    home.mkdir(parents=True)
    key_file().write_bytes(text if isinstance(text, bytes) else text.encode())
    key_file().chmod(0o600)
    with pytest.warns(PerplexityWarning, match=r"damaged.*broken-1.*%perplexity login"):
        assert load_key() is None
    assert not key_file().exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_key() is None
    assert delete_key() and not list(home.glob("*broken*"))


@pytest.mark.skipif(sys.platform == "win32", reason="file modes")
def test_a_file_that_others_can_read_is_made_private_and_used() -> None:
    save_key(Secret(KEY))
    key_file().chmod(0o644)
    with pytest.warns(PerplexityWarning, match="could be read by others") as caught:
        assert stored() == KEY
    assert mode(key_file()) == 0o600
    assert KEY not in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert stored() == KEY


def test_a_stored_key_that_can_be_none_is_refused_without_being_shown() -> None:
    save_key(Secret(KEY + " x"))
    with pytest.raises(ConfigurationError, match="from the file") as raised:
        find_key()
    assert KEY not in shown(raised.value)


def test_a_file_that_cannot_be_read_is_a_sentence(home: Path) -> None:
    key_file().mkdir(parents=True)
    with pytest.raises(ConfigurationError, match=r"api-key\.json cannot be read") as raised:
        find_key()
    assert "%perplexity login" in str(raised.value)


def test_a_key_that_cannot_be_written_is_not_in_the_error(home: Path) -> None:
    home.parent.mkdir()
    home.write_text("a file where the folder should be")
    with pytest.raises(ConfigurationError) as raised:
        save_key(Secret(KEY))
    assert KEY not in shown(raised.value)
    home.unlink()
    key_file().mkdir(parents=True)  # now the last step, the renaming, fails
    with pytest.raises(ConfigurationError, match="cannot be written") as raised:
        save_key(Secret(KEY))
    assert KEY not in shown(raised.value)
    assert not [path for path in home.rglob("*") if path.is_file() and KEY in path.read_text()]


def test_two_homes_have_two_keys_in_one_keyring(
    ring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    save_key(Secret(KEY))
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(tmp_path / "second"))
    assert stored() is None
    save_key(Secret("pplx-second"))
    assert stored() == "pplx-second"
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(tmp_path / "ours"))
    assert stored() == KEY


def test_a_key_that_another_process_stores_counts_at_once(tmp_path: Path) -> None:
    import subprocess

    save_key(Secret(KEY))
    assert stored() == KEY
    code = (
        "from ipyperplexity.auth.key_store import save_key\n"
        "from ipyperplexity.net.redact import Secret\n"
        "save_key(Secret('pplx-from-elsewhere'))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ})
    assert stored() == "pplx-from-elsewhere"
