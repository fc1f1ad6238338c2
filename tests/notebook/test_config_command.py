"""``%perplexity config``: a default for all notebooks, chosen from a list or set by name."""

from __future__ import annotations

import builtins
import datetime as dt
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from IPython.core.error import StdinNotImplementedError

from ipyperplexity.errors import ConfigurationError, Interrupted, InvalidRequestError
from ipyperplexity.notebook.config_command import Choice, run_config
from ipyperplexity.notebook.in_effect import in_effect
from ipyperplexity.notebook.settings import Settings
from ipyperplexity.store import ledger as ledger_module
from ipyperplexity.store.ledger import Ledger
from ipyperplexity.store.ledger_entry import LedgerEntry
from ipyperplexity.stored_settings import SETTING_NAMES, load_settings, save_setting, settings_path
from tests.store.processes import PROJECT

Screen = Callable[..., str]


@pytest.fixture(autouse=True)
def ledger(monkeypatch: pytest.MonkeyPatch) -> Ledger:
    ledger = Ledger()
    monkeypatch.setattr(ledger_module, "_ledger", ledger)
    return ledger


@pytest.fixture
def config(capsys: pytest.CaptureFixture[str]) -> Screen:
    """Run the command as the words after ``config``; returns what the screen shows."""

    def run(text: str = "", settings: Any = None, **options: Any) -> str:
        run_config(text.split(), settings, **options)
        return capsys.readouterr().out

    return run


def typing(word: str) -> Callable[[str], str]:
    return lambda prompt: word


def refusing(prompt: str) -> str:
    raise AssertionError("nobody was to be asked")


def line_of(screen: str, name: str) -> str:
    return next(line for line in screen.splitlines() if name in line.split())


# --- choosing a model -----------------------------------------------------------------------------


def test_the_list_marks_the_model_in_use_and_tells_what_each_costs(
    config: Screen, ledger: Ledger
) -> None:
    at = dt.datetime(2026, 10, 9, 12, tzinfo=dt.UTC)
    ledger.record(LedgerEntry("ask", asked_model="medium", cost_usd=0.0123, at=at))
    screen = config(ask=typing(""))
    assert [line.split()[1] for line in screen.splitlines() if "$" in line] == [
        *("fast", "low", "medium", "high", "xhigh", "wide-research")
    ]
    assert screen.count("[current]") == 1
    assert "[current]" in line_of(screen, "low")
    assert "about $0.0018" in line_of(screen, "fast")
    assert "$0.0123 on 2026-10-09" in line_of(screen, "medium")
    assert "Unchanged." in screen
    assert not settings_path().exists()


@pytest.mark.parametrize(("typed", "name"), [("4", "high"), (" high ", "high"), ("xhigh", "xhigh")])
def test_a_number_or_a_name_is_written_and_told(config: Screen, typed: str, name: str) -> None:
    screen = config(ask=typing(typed))
    assert load_settings() == {"model": name}
    assert f"The default model of agent is now {name}" in screen
    assert str(settings_path()) in screen
    assert "[current]" in line_of(config(ask=typing("")), name)


def test_a_model_that_is_not_in_the_list_can_be_named_and_is_in_it_then(config: Screen) -> None:
    config(ask=typing("openai/gpt-6-sol"))
    assert load_settings() == {"model": "openai/gpt-6-sol"}
    assert "[current]" in line_of(config(ask=typing("")), "openai/gpt-6-sol")


@pytest.mark.parametrize("typed", ["0", "7", "99999999999999999999", "lwo", "a b", "²"])
def test_a_number_or_a_name_that_there_is_not_is_refused_and_nothing_is_written(
    config: Screen, typed: str
) -> None:
    with pytest.raises(InvalidRequestError, match="model: got .*; allowed: ") as caught:  # noqa: RUF043
        config(ask=typing(typed))
    assert caught.value.field == "model"
    assert not settings_path().exists()


def test_a_key_typed_in_place_of_a_model_is_refused_and_not_shown(
    config: Screen, capsys: pytest.CaptureFixture[str]
) -> None:
    for key in ("pplx-abcdef0123456789", "kx-4f9a7c1e5bd2"):
        with pytest.raises(InvalidRequestError) as caught:
            config(ask=typing(key))
        assert key not in str(caught.value) + capsys.readouterr().out
    assert not settings_path().exists()


def test_on_the_web_backend_the_slugs_are_offered_with_their_labels(config: Screen) -> None:
    settings = Settings(backend="web")
    screen = config("", settings, ask=typing("pplx_alpha"))
    assert "[current]" in line_of(screen, "pplx_pro_upgraded")
    assert "Pro (auto)" in line_of(screen, "pplx_pro_upgraded")
    assert "The default model of web is now pplx_alpha (Deep Research)" in screen
    config("", settings, ask=typing("a_slug_of_tomorrow"))
    assert load_settings()["web_model"] == "a_slug_of_tomorrow"


def test_another_list_can_be_handed_in(config: Screen) -> None:
    choices = [Choice("one/a", "The first"), Choice("one/b", note="dear")]
    screen = config(ask=typing("2"), models=choices)
    assert "The first" in screen and "dear" in screen
    assert load_settings() == {"model": "one/b"}
    config(ask=typing("1"), models=lambda: choices[:1])
    assert load_settings() == {"model": "one/a"}


@pytest.mark.parametrize("error", [EOFError(), StdinNotImplementedError("none"), OSError("closed")])
def test_where_nobody_can_be_asked_it_is_said_how_to_set_it(
    config: Screen, error: Exception
) -> None:
    def ask(prompt: str) -> str:
        raise error

    assert "%perplexity config model=NAME" in config(ask=ask)
    assert not settings_path().exists()


def test_a_program_without_an_input_is_told_how_to_set_it() -> None:
    code = "from ipyperplexity.notebook.config_command import run_config; run_config([])"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=PROJECT,
        check=True,
    )
    assert "%perplexity config model=NAME" in ran.stdout


def test_an_interrupt_leaves_everything_as_it_was(config: Screen) -> None:
    def ask(prompt: str) -> str:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="unchanged") as caught:
        config(ask=ask)
    assert caught.value.__context__ is None
    assert not settings_path().exists()


def test_the_input_of_the_moment_is_used(config: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    # A kernel puts its own `input` in place for the time of a cell.
    monkeypatch.setattr(builtins, "input", typing("fast"))
    config()
    assert load_settings() == {"model": "fast"}


# --- by name --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("recency=month", {"recency": "month"}),
        ("recency = month", {"recency": "month"}),
        ("recency month", {"recency": "month"}),
        ("max-tokens=300", {"max_tokens": 300}),
        ("domain=python.org, -x.com", {"domains": ("python.org", "-x.com")}),
        ("system=You are terse = short.", {"system": "You are terse = short."}),
        ('system="You are terse"', {"system": "You are terse"}),
        ("model=anthropic/claude-opus-5-5", {"model": "anthropic/claude-opus-5-5"}),
        ("budget=2.5", {"budget": 2.5}),
        ("stream=off", {"stream": False}),
        ("backend=demo", {"backend": "demo"}),
    ],
)
def test_one_line_sets_a_default(config: Screen, text: str, stored: dict[str, Any]) -> None:
    screen = config(text, ask=refusing)
    assert load_settings() == stored
    (name,) = stored
    assert screen.startswith(f"{name} is now ") and str(settings_path()) in screen


def test_nothing_after_the_sign_clears_it(config: Screen) -> None:
    config("model=high")
    assert "it is now low" in config("model=")
    assert load_settings() == {}


def test_a_name_alone_tells_its_value_and_where_it_comes_from(config: Screen) -> None:
    assert config("model", ask=refusing) == "model: low (default)\n"
    config("model=high")
    assert config("model", ask=refusing) == "model: high (file)\n"


def test_what_was_cleared_for_it_is_told(config: Screen) -> None:
    config("recency=month")
    assert "recency was cleared" in config("after=2026-01-02")


@pytest.mark.parametrize(
    ("text", "field", "parts"),
    [
        ("recencey=day", "config", ["'recencey'", "did you mean 'recency'", "max_tokens"]),
        ("recency=fortnight", "recency", ["'fortnight'", "hour, day, week"]),
        ("budget=ten", "budget", ["'ten'", "US dollars"]),
        ("model=lwo", "model", ["'lwo'", "low", "agent backend"]),
        ("backend=agnet", "backend", ["'agnet'", "agent, chat, web, demo"]),
        ("base_url=http://gw.example", "base_url", ["http://gw.example", "https"]),
        ("schema=X", "config", ["'schema'"]),
        ("--shwo", "config", ["--shwo", "config --show"]),
        ("=month", "config", ["name is missing"]),
    ],
)
def test_what_is_wrong_is_refused_with_what_is_allowed(
    config: Screen, text: str, field: str, parts: list[str]
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        config(text, ask=refusing)
    assert caught.value.field == field
    for part in parts:
        assert part in str(caught.value)
    assert caught.value.__context__ is None
    assert not settings_path().exists()


@pytest.mark.parametrize(
    "text",
    ["api_key=SECRET", "PERPLEXITY_API_KEY = SECRET", "system=SECRET", "SECRET", "--key=SECRET",
     "model=SECRET", "token SECRET"],
)  # fmt: skip
def test_a_key_is_stored_nowhere_and_shown_nowhere(
    config: Screen, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = "pplx-abcdef0123456789"
    with pytest.raises(InvalidRequestError) as caught:
        config(text.replace("SECRET", secret), ask=refusing)
    assert secret not in str(caught.value) + capsys.readouterr().out
    assert not settings_path().exists()


def test_the_help_names_every_setting(config: Screen) -> None:
    for text in ("--help", "-h", "model --help"):
        screen = config(text, ask=refusing)
        assert all(name in screen for name in SETTING_NAMES)
    assert not settings_path().exists()


# --- where a value comes from ---------------------------------------------------------------------


def test_each_setting_is_shown_with_where_it_comes_from(
    config: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("recency", "month"), ("model", "high"), ("limit", 5), ("budget", 2)):
        save_setting(name, value)
    monkeypatch.setenv("IPYPERPLEXITY_MODEL", "fast")
    settings = Settings(limit=7, domains=["python.org", "-x.com"])
    screen = config("--show", settings, ask=refusing)
    origins = {line.split()[0]: line.split() for line in screen.splitlines() if line[:1].islower()}
    assert set(SETTING_NAMES) <= set(origins)
    assert origins["recency"] == ["recency", "month", "file"]
    assert origins["model"] == ["model", "fast", "environment,", "IPYPERPLEXITY_MODEL"]
    assert origins["limit"] == ["limit", "7", "%config"]
    assert origins["domains"] == ["domains", "python.org,", "-x.com", "%config"]
    assert origins["budget"] == ["budget", "2.0", "file"]
    assert origins["country"] == ["country", "not", "set", "default"]
    assert origins["backend"] == ["backend", "agent", "default"]
    assert origins["base_url"] == ["base_url", "https://api.perplexity.ai", "default"]
    assert origins["nest_asyncio"] == ["nest_asyncio", "no", "default"]
    assert str(settings_path()) in screen


def test_the_order_is_config_then_environment_then_file_then_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def model(settings: Any = None) -> tuple[Any, str]:
        found = {setting.name: setting for setting in in_effect(settings)}["model"]
        return found.value, found.origin

    assert model() == ("low", "default")
    save_setting("model", "high")
    assert model() == ("high", "file")
    monkeypatch.setenv("IPYPERPLEXITY_MODEL", "  ")
    assert model() == ("high", "file")
    monkeypatch.setenv("IPYPERPLEXITY_MODEL", "fast")
    assert model() == ("fast", "environment, IPYPERPLEXITY_MODEL")
    assert model(Settings(model="medium")) == ("medium", "%config")


def test_what_comes_before_a_new_default_is_told(
    config: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPYPERPLEXITY_MODEL", "fast")
    assert "But IPYPERPLEXITY_MODEL is fast, and comes first." in config("model=high")
    screen = config("", Settings(model="low"), ask=typing("medium"))
    assert "But %config PerplexityMagics.model is low, and comes first." in screen


def test_no_password_and_no_control_character_is_shown(config: Screen) -> None:
    settings_path().parent.mkdir(parents=True)
    settings_path().write_text(
        json.dumps({"base_url": "https://me:secret@x.example", "system": "a\x1b[31mb\nc"})
    )
    with pytest.warns(UserWarning, match="base_url"):
        screen = config("--show")
    assert "secret" not in screen and "\x1b" not in screen
    assert "ab c" in screen


def test_a_file_that_cannot_be_written_is_an_error(
    config: Screen, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    (tmp_path / "plain").write_text("x")
    monkeypatch.setenv("IPYPERPLEXITY_HOME", str(tmp_path / "plain"))
    with pytest.warns(UserWarning), pytest.raises(ConfigurationError, match="cannot be made"):
        config("model=high")
