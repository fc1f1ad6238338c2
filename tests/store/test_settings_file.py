"""Stored defaults: edited by hand, written by several kernels, read with each question."""

from __future__ import annotations

import datetime as dt
import json
import os
import stat
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipyperplexity import stored_settings
from ipyperplexity.errors import ConfigurationError, InvalidRequestError, PerplexityWarning
from ipyperplexity.question import Question
from ipyperplexity.store.settings_file import SettingsFile
from ipyperplexity.stored_settings import (
    SETTING_NAMES,
    check_setting,
    load_settings,
    save_setting,
    settings_path,
)
from tests.store.processes import run_at_once, start

KEY = "pplx-abcdef0123456789"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """A warning that a test does not expect is a failure."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", PerplexityWarning)
        yield


def write(text: str | bytes) -> None:
    settings_path().parent.mkdir(parents=True, exist_ok=True)
    settings_path().write_bytes(text.encode() if isinstance(text, str) else text)


def stored() -> Any:
    return json.loads(settings_path().read_text())


def complained(text: str | bytes) -> tuple[dict[str, Any], list[str]]:
    write(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = load_settings()
        assert load_settings() == found
    return found, [str(warning.message) for warning in caught]


# --- reading --------------------------------------------------------------------------------------


def test_without_a_file_nothing_is_set_and_nothing_is_made(home: Path) -> None:
    assert load_settings() == {}
    assert not home.exists()


def test_values_come_back_in_the_form_that_a_question_gives_them() -> None:
    write(
        '{"model": "high", "domains": "python.org, -x.com", "after": "2026-01-02", "limit": "5",'
        ' "country": "be", "search": "force", "budget": "2.50", "stream": "off", "timeout": 30,'
        ' "max_retries": 0, "backend": "WEB", "base_url": "https://gw.example/v1/"}'
    )
    assert load_settings() == {
        "model": "high",
        "domains": ("python.org", "-x.com"),
        "after": dt.date(2026, 1, 2),
        "limit": 5,
        "country": "BE",
        "search": "force",
        "budget": 2.5,
        "stream": False,
        "timeout": 30.0,
        "max_retries": 0,
        "backend": "web",
        "base_url": "https://gw.example/v1",
    }


def test_what_is_null_or_blank_is_not_set() -> None:
    write('{"model": "", "system": "  ", "limit": null, "budget": ""}')
    assert load_settings() == {}


@pytest.mark.parametrize("text", ["", " \n", "{}", "\ufeff{}"])
def test_an_empty_file_sets_nothing(text: str) -> None:
    write(text)
    assert load_settings() == {}
    assert settings_path().exists()


def test_files_of_other_editors_are_read_too() -> None:
    write('\ufeff{"model": "high"}')
    assert load_settings() == {"model": "high"}
    write('{"system": "kurz"}'.encode("utf-16"))
    assert load_settings() == {"system": "kurz"}


def test_an_unknown_name_is_left_out_and_the_nearest_is_named() -> None:
    found, complaints = complained('{"recencey": "day", "model": "high"}')
    assert found == {"model": "high"}
    assert len(complaints) == 1
    assert "'recencey'" in complaints[0] and "did you mean 'recency'" in complaints[0]
    assert str(settings_path()) in complaints[0]


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("recency", "fortnight", "hour, day, week, month, year"),
        ("limit", 0, "1 to 50"),
        ("limit", 2.5, "1 to 50"),
        ("stream", "maybe", "yes or no"),
        ("max_retries", -1, "from 0 up"),
        ("temperature", 3, "from 0 to 2"),
        ("domains", {"a": 1}, "sites"),
        ("model", ["low"], "text"),
        ("after", "yesterday", "a date"),
    ],
)
def test_a_wrong_value_is_left_out_and_the_others_hold(name: str, value: Any, allowed: str) -> None:
    found, complaints = complained(json.dumps({name: value, "country": "BE"}))
    assert found == {"country": "BE"}
    (complaint,) = complaints
    assert complaint.startswith(f"{name}: got ") and allowed in complaint
    if not isinstance(value, dict | list):
        assert str(value) in complaint


def test_a_wrong_budget_lets_nothing_be_spent() -> None:
    found, (complaint,) = complained('{"budget": "ten", "model": "high"}')
    assert found == {"budget": 0.0, "model": "high"}
    assert "'ten'" in complaint and "nothing may be spent" in complaint


@pytest.mark.parametrize(
    ("name", "value"), [("backend", "agnet"), ("base_url", "gw.example"), ("backend", 5)]
)
def test_a_wrong_address_or_backend_stays_so_that_no_question_goes_elsewhere(
    name: str, value: Any
) -> None:
    found, (complaint,) = complained(json.dumps({name: value}))
    assert found == {name: str(value)}
    assert "no question is asked" in complaint


@pytest.mark.parametrize(
    "record",
    [
        {"recency": "day", "after": "2026-01-01"},
        {"after": "2026-02-01", "before": "2026-01-01"},
        {"search": "no", "country": "BE", "limit": 4},
    ],
)
def test_settings_that_cannot_stand_together_still_make_a_question(record: Any) -> None:
    found, complaints = complained(json.dumps(record))
    assert complaints
    assert found
    assert Question("Why?", **found)
    assert len(found) + len(complaints) == len(record)


@pytest.mark.parametrize(
    "text",
    [
        '{"model": ',
        "[1, 2]",
        '"low"',
        "null",
        "7",
        b"\xff\x00\x80garbage",
        "[" * 100_000,
        "{'a': 1}",
    ],
)
def test_a_file_that_is_no_json_object_is_set_aside_with_one_warning(text: str | bytes) -> None:
    found, complaints = complained(text)
    assert found == {}
    (complaint,) = complaints
    assert "config.json.broken-1" in complaint
    assert not settings_path().exists()
    kept = settings_path().with_name("config.json.broken-1").read_bytes()
    assert kept == (text.encode() if isinstance(text, str) else text)
    save_setting("model", "high")
    assert load_settings() == {"model": "high"}


def test_a_file_that_cannot_be_read_counts_as_empty_with_one_warning() -> None:
    settings_path().mkdir(parents=True)
    with pytest.warns(PerplexityWarning, match="cannot be read") as caught:
        assert load_settings() == load_settings() == {}
    assert len(caught) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX")
def test_a_file_that_others_can_write_is_made_private() -> None:
    write('{"model": "high"}')
    settings_path().chmod(0o666)
    assert load_settings() == {"model": "high"}
    assert stat.S_IMODE(settings_path().stat().st_mode) == 0o600


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(SETTING_NAMES) | st.text(max_size=8), json_values))
def test_whatever_is_in_the_file_what_is_loaded_makes_a_question(record: dict[str, Any]) -> None:
    write(json.dumps(record))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = load_settings()
    assert set(found) <= set(SETTING_NAMES)
    options = {name: value for name, value in found.items() if name in stored_settings.OPTIONS}
    assert Question("Why?", **options)


# --- noticing changes -----------------------------------------------------------------------------


def test_a_change_counts_at_once_even_one_of_the_same_length_in_the_same_moment() -> None:
    now = time.time_ns()
    for model in ("aaaa", "bbbb", "aaaa"):
        write(json.dumps({"model": model}))
        os.utime(settings_path(), ns=(now, now))
        assert load_settings() == {"model": model}
    settings_path().unlink()
    assert load_settings() == {}


def test_an_unchanged_file_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []

    def read(record: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        reads.append(record)
        return record, []

    file = SettingsFile(read)
    write('{"model": "high"}')
    old = settings_path().stat().st_mtime - 60
    os.utime(settings_path(), (old, old))
    monkeypatch.setattr(Path, "read_bytes", counted := _Counted(Path.read_bytes))
    for _ in range(5):
        assert file.load() == {"model": "high"}
    assert (len(reads), counted.calls) == (1, 1)


class _Counted:
    def __init__(self, function: Any) -> None:
        self.function, self.calls = function, 0

    def __get__(self, instance: Any, owner: Any) -> Any:
        def call() -> Any:
            self.calls += 1
            return self.function(instance)

        return call


def test_another_home_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_setting("model", "high")
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(tmp_path / "other"))
    assert load_settings() == {}
    save_setting("model", "fast")
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(tmp_path / "home"))
    assert load_settings() == {"model": "high"}


def test_what_was_loaded_can_be_changed_without_changing_the_settings() -> None:
    save_setting("model", "high")
    old = settings_path().stat().st_mtime - 60
    os.utime(settings_path(), (old, old))
    for _ in range(3):
        load_settings()["model"] = "fast"
    assert load_settings() == {"model": "high"}


# --- writing --------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="modes are POSIX")
def test_the_file_is_private_and_so_is_its_folder(home: Path) -> None:
    write("{}")
    settings_path().chmod(0o644)
    save_setting("model", "high")
    assert stat.S_IMODE(settings_path().stat().st_mode) == 0o600
    settings_path().unlink()
    settings_path().with_name(".config.json.lock").unlink(missing_ok=True)
    settings_path().parent.rmdir()
    home.rmdir()
    save_setting("model", "high")
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (settings_path(), home / "config", home)]
    assert modes == [0o600, 0o700, 0o700]


@pytest.mark.parametrize(
    ("name", "value", "written"),
    [
        ("model", " high ", "high"),
        ("domains", "python.org,-x.com", ["python.org", "-x.com"]),
        ("after", "2026-1-2", "2026-01-02"),
        ("search", "no", False),
        ("budget", "$2", 2.0),
        ("conversation", "yes", True),
        ("limit", "7", 7),
    ],
)
def test_a_value_is_written_as_json_and_loaded_as_checked(
    name: str, value: Any, written: Any
) -> None:
    changed = save_setting(name, value)
    assert stored() == {name: written}
    assert load_settings() == changed == {name: check_setting(name, value)}


def test_none_or_blank_text_clears_a_setting_and_leaves_the_others() -> None:
    save_setting("model", "high")
    save_setting("country", "BE")
    assert save_setting("model", None) == {"model": None}
    assert load_settings() == {"country": "BE"}
    save_setting("country", " ")
    assert load_settings() == {}


def test_what_this_version_does_not_know_is_kept() -> None:
    write('{"from_tomorrow": [1], "model": "low"}')
    save_setting("model", "high")
    assert stored() == {"from_tomorrow": [1], "model": "high"}


def test_what_cannot_stand_beside_the_new_value_is_cleared_and_told() -> None:
    save_setting("recency", "month")
    save_setting("country", "BE")
    assert save_setting("after", "2026-01-02") == {"after": dt.date(2026, 1, 2), "recency": None}
    assert save_setting("search", "no") == {"search": False, "after": None, "country": None}
    assert load_settings() == {"search": False}


def test_a_value_that_cannot_stand_beside_what_is_set_is_refused() -> None:
    save_setting("search", "no")
    with pytest.raises(InvalidRequestError, match="while search is off") as caught:
        save_setting("country", "BE")
    assert caught.value.field == "country"
    assert load_settings() == {"search": False}


@pytest.mark.parametrize("name", ["recencey", "schema", "images", "text", "nest_asyncio", ""])
def test_only_known_settings_can_be_stored(name: str) -> None:
    with pytest.raises(InvalidRequestError, match="no such setting"):
        save_setting(name, "x")
    assert not settings_path().exists()


def test_a_file_that_is_damaged_is_set_aside_when_it_is_written() -> None:
    write("{no json")
    with pytest.warns(PerplexityWarning, match="broken-1"):
        save_setting("model", "high")
    assert load_settings() == {"model": "high"}


def test_a_link_to_a_file_elsewhere_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "dotfiles.json").write_text("{}")
    settings_path().parent.mkdir(parents=True)
    settings_path().symlink_to(tmp_path / "dotfiles.json")
    save_setting("model", "high")
    assert settings_path().is_symlink()
    assert json.loads((tmp_path / "dotfiles.json").read_text()) == {"model": "high"}
    assert load_settings() == {"model": "high"}


def test_a_place_that_cannot_be_written_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain").write_text("x")
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(tmp_path / "plain"))
    with pytest.warns(PerplexityWarning, match="cannot be read"):
        assert load_settings() == {}
    with pytest.raises(ConfigurationError, match="cannot be made"):
        save_setting("model", "high")


# --- no key ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETTING_NAMES)
def test_a_key_is_refused_as_any_value_and_shown_nowhere(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERPLEXITY_API_KEY", "kx-4f9a7c1e5bd2")
    for key in (KEY, f"my key is {KEY}", "Bearer abcdefghijkl", "see kx-4f9a7c1e5bd2", [KEY]):
        with pytest.raises(InvalidRequestError) as caught:
            save_setting(name, key)
        text = "\n".join(caught.value._render_traceback_()) + repr(caught.value)
        assert "abcdef" not in text and "4f9a" not in text
    assert not settings_path().exists()


@pytest.mark.parametrize("name", SETTING_NAMES)
@pytest.mark.parametrize("key", [KEY, "kx-4f9a7c1e5bd2"])
def test_a_key_in_the_file_is_not_used_and_shown_nowhere(
    name: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PPLX_API_KEY", "kx-4f9a7c1e5bd2")
    found, complaints = complained(json.dumps({name: key}))
    assert key not in str(found)
    assert complaints and key not in str(complaints)


@pytest.mark.parametrize("name", ["api_key", "apiKey", "PERPLEXITY_API_KEY", "token", "cookie"])
def test_there_is_no_setting_for_a_key_and_the_command_for_it_is_named(name: str) -> None:
    found, (complaint,) = complained(json.dumps({name: KEY}))
    assert found == {}
    assert KEY not in complaint and "login" in complaint
    with pytest.raises(InvalidRequestError, match="login"):
        save_setting(name, KEY)


def test_a_password_in_an_address_is_not_kept() -> None:
    found, complaints = complained('{"base_url": "https://me:secret@gw.example"}')
    assert "secret" not in str(found) + str(complaints)
    with pytest.raises(InvalidRequestError) as caught:
        save_setting("base_url", "https://me:secret@gw.example")
    assert "secret" not in str(caught.value)


# --- several at once ------------------------------------------------------------------------------

SETTER = """
import sys
from ipyperplexity.stored_settings import load_settings, save_setting
name = ["model", "system", "country"][int(sys.argv[1])]
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    save_setting(name, "BE" if name == "country" else f"value-{number}")
    assert name in load_settings()
"""


def test_kernels_that_set_different_things_at_once_lose_nothing() -> None:
    run_at_once(SETTER, 3)
    assert load_settings() == {"model": "value-19", "system": "value-19", "country": "BE"}


KILLED_SETTER = """
from ipyperplexity.stored_settings import save_setting
number = 0
while True:
    save_setting("system", f"{number} " + "x" * 50_000)
    number += 1
    if number == 3:
        print("ready", flush=True)
"""


def test_a_kernel_that_is_killed_while_it_saves_leaves_good_settings() -> None:
    save_setting("model", "high")
    for _ in range(4):
        process = start(KILLED_SETTER)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()
        process.kill()
        process.communicate(timeout=30)
        assert load_settings()["model"] == "high"
        save_setting("country", "BE")


MENDER = """
import sys, warnings
warnings.simplefilter("ignore")
from ipyperplexity.stored_settings import load_settings, save_setting
print("ready", flush=True)
sys.stdin.readline()
load_settings()
save_setting(["model", "system", "country"][int(sys.argv[1])], "be")
"""


def test_kernels_that_meet_a_damaged_file_at_once_set_only_that_aside() -> None:
    write("{damaged")
    run_at_once(MENDER, 3)
    assert load_settings() == {"model": "be", "system": "be", "country": "BE"}
    assert len(list(settings_path().parent.glob("*.broken-*"))) == 1
