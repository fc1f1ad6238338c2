"""Files for their owner alone: from the first byte, whole at every moment, whatever happens."""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipyperplexity.errors import ConfigurationError
from ipyperplexity.store import folders, private_files
from ipyperplexity.store.private_files import (
    is_open_to_others,
    locked,
    make_private,
    make_private_folder,
    read_private,
    set_aside,
    write_private,
)
from tests.store.processes import run_at_once, start

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@posix
def test_files_and_folders_are_private_even_where_the_umask_hides_nothing(
    tmp_path: Path, no_umask: None
) -> None:
    path = tmp_path / "a" / "b" / "file"
    write_private(path, "text")
    with locked(path):
        locks = [file for file in path.parent.iterdir() if file.name.endswith(".lock")]
        assert [mode(file) for file in locks] == [0o600]
    assert (mode(path), mode(path.parent), mode(path.parent.parent)) == (0o600, 0o700, 0o700)


@posix
def test_writing_over_a_file_that_others_can_read_makes_it_private(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)
    assert is_open_to_others(path)
    write_private(path, "new")
    assert (path.read_text(), mode(path), is_open_to_others(path)) == ("new", 0o600, False)


@posix
def test_making_a_file_private_takes_it_from_all_others(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("x")
    path.chmod(0o666)
    make_private(path)
    assert mode(path) == 0o600
    make_private(tmp_path / "missing")  # quiet
    assert not is_open_to_others(tmp_path / "missing")


def test_text_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert read_private(path) is None
    text = "Größe 東京 😀\r\nline\nend"
    write_private(path, text)
    assert read_private(path) == text


def test_text_that_utf8_cannot_carry_is_written_all_the_same(tmp_path: Path) -> None:
    write_private(tmp_path / "file", "a\ud800b")
    assert read_private(tmp_path / "file") == "a?b"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_place_below_a_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    with pytest.raises(ConfigurationError, match="plain"):
        make_private_folder(tmp_path / "plain")
    with pytest.raises(ConfigurationError, match="cannot be made"):
        write_private(tmp_path / "plain" / "file", "x")
    with (
        pytest.raises(ConfigurationError, match="cannot be made"),
        locked(tmp_path / "plain" / "f"),
    ):
        pass


def test_a_folder_in_the_place_of_the_file_is_an_error_and_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").mkdir()
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_private(tmp_path / "file", "x")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_private(tmp_path / "file")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 0)() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(ConfigurationError, match="cannot be written"):
            write_private(tmp_path / "file", "x")
    finally:
        tmp_path.chmod(0o700)


def test_bytes_that_are_no_text_are_an_error_without_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\xff\xfesecret")
    with pytest.raises(ConfigurationError, match="it is not text") as caught:
        read_private(tmp_path / "file")
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_damaged_files_are_all_kept_under_names_of_their_own(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        (tmp_path / "file").write_text(f"bad {number}")
        assert set_aside(tmp_path / "file").name == f"file.broken-{number}"
    assert (tmp_path / "file.broken-2").read_text() == "bad 2"
    set_aside(tmp_path / "file")  # another kernel was faster


KILLED_WRITER = """
import sys
from pathlib import Path
from ipyperplexity.store.private_files import locked, write_private
path = Path(sys.argv[1])
number = 0
while True:
    number += 1
    with locked(path):
        write_private(path, f"<{'x' * 200_000}{number}>")
    if number == 3:
        print("ready", flush=True)
"""


def test_a_writer_that_is_killed_leaves_a_whole_file_and_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for _ in range(5):
        process = start(KILLED_WRITER, path)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()
        process.kill()
        process.communicate(timeout=30)
        text = read_private(path)
        assert text is not None
        assert (text[0], text[-1]) == ("<", ">")
        with locked(path):
            write_private(path, "<after>")


COUNTER = """
import sys
from pathlib import Path
from ipyperplexity.store.private_files import locked, read_private, write_private
path = Path(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for _ in range(25):
    with locked(path):
        write_private(path, str(int(read_private(path) or 0) + 1))
"""


def test_processes_that_count_in_one_file_lose_nothing(tmp_path: Path) -> None:
    run_at_once(COUNTER, 3, tmp_path / "count")
    assert read_private(tmp_path / "count") == "75"


def test_threads_that_count_in_one_file_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "count"

    def count() -> None:
        for _ in range(20):
            with locked(path):
                write_private(path, str(int(read_private(path) or 0) + 1))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_private(path) == "80"


def test_a_lock_that_is_held_for_long_is_an_error_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(private_files, "LOCK_TIMEOUT", 0.05)
    with (
        locked(tmp_path / "file"),
        pytest.raises(ConfigurationError, match="busy"),
        locked(tmp_path / "file"),
    ):
        pass


def test_an_error_inside_a_lock_lets_go_of_it(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path / "file"):
        1 / 0  # noqa: B018
    with locked(tmp_path / "file"):
        pass


# --- the folders ----------------------------------------------------------------------------------


def test_one_variable_moves_all_folders_and_counts_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for home in (tmp_path / "one", tmp_path / "two"):
        monkeypatch.setenv("IPYPERPLEXITY_HOME", str(home))
        assert folders.config_dir() == home / "config"
        assert folders.state_dir() == home / "state"
        assert folders.cache_dir() == home / "cache"
        assert not home.exists()


def test_a_home_may_be_relative_or_begin_with_a_tilde(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYPERPLEXITY_HOME", "here")
    assert folders.state_dir() == tmp_path / "here" / "state"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("IPYPERPLEXITY_HOME", "~/there")
    assert folders.state_dir() == tmp_path / "there" / "state"


def test_the_home_of_a_user_who_is_not_there_is_an_error_that_names_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("IPYPERPLEXITY_HOME", "~nobody-of-this-name/x")
    with pytest.raises(ConfigurationError, match="IPYPERPLEXITY_HOME") as caught:
        folders.config_dir()
    assert caught.value.field == "IPYPERPLEXITY_HOME"


def test_without_the_variable_the_folders_are_the_platforms_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("IPYPERPLEXITY_HOME", "  ")
    for folder in (folders.config_dir(), folders.state_dir(), folders.cache_dir()):
        assert folder.is_absolute()
        assert "ipyperplexity" in folder.parts
