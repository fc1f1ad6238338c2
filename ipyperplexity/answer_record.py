"""An answer as a JSON document, and back: the format that ``Answer.save`` writes.

Invariant: what ``dumps`` writes, ``loads`` gives back, field by field, as the arguments of an
Answer; every field has one entry in one table, which writes and checks it. A document holds no key.
Fields that this version does not know are passed over, so that a later one may add some; what an
older reader would get wrong needs a new format version. Whatever bytes arrive, ``loads`` gives
whole fields or an error that names the place.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import enum
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, get_args

from ipyperplexity import errors
from ipyperplexity.answer_parts import Image, Turn, Usage
from ipyperplexity.errors import InvalidRequestError, PerplexityError
from ipyperplexity.schema.frame import Layout
from ipyperplexity.secret_patterns import hide_secrets_in
from ipyperplexity.sources import Source, Sources
from ipyperplexity.tabular.cells import Kind
from ipyperplexity.tools import ToolCall

FORMAT = "ipyperplexity answer"
VERSION = 1


# --- the document --------------------------------------------------------------------------------


def dumps(fields: Mapping[str, Any], *, compact: bool = False) -> str:
    """Return the fields of an answer as a JSON document, keys masked.

    Parameters
    ----------
    fields : mapping
        All fields of an Answer, by name.
    compact : bool
        One line for a machine, in a fifth of the time, and not a page for people.

    Raises
    ------
    InvalidRequestError
        If a field holds what JSON cannot.
    """
    record = _plain_values(fields)
    whole = {"format": FORMAT, "version": VERSION, "answer": hide_secrets_in(record)}
    text = json.dumps(whole, ensure_ascii=False, indent=None if compact else 1)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a character: JSON can name it, UTF-8 cannot
        text = json.dumps(whole, indent=1)
    return text + "\n"


def _plain_values(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields as plain values, which are all that the mask looks at."""
    with contextlib.suppress(TypeError, ValueError, RecursionError):
        dumped = {name: field.dump(fields[name]) for name, field in _FIELDS.items()}
        plain: dict[str, Any] = json.loads(json.dumps(dumped))
        return plain
    for name, field in _FIELDS.items():  # which of them is it?
        problem = ""
        try:
            json.loads(json.dumps(field.dump(fields[name])))
        except (TypeError, ValueError, RecursionError) as error:
            problem = str(error) or type(error).__name__
        if problem:
            raise InvalidRequestError(
                f"{name}: this answer cannot be saved, as JSON cannot hold it ({problem}).",
                field=name,
            )
    raise InvalidRequestError("This answer cannot be saved, as JSON cannot hold it.")


def loads(document: bytes, name: str) -> dict[str, Any]:
    """Return the arguments of the Answer that a document holds.

    Parameters
    ----------
    document : bytes
        The JSON, in UTF-8.
    name : str
        What messages call it.

    Raises
    ------
    InvalidRequestError
        If it is damaged, is something else, or was written by a newer version.
    """
    whole = _parsed(document, name)
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        _refuse(f"{name} is no saved answer: its format is not {FORMAT!r}.")
    version = whole.get("version")
    if type(version) is not int or version < 1:
        _refuse(f"{name} is damaged: version is {_shown(version)}, not a whole number from 1 up.")
    if version > VERSION:
        _refuse(
            f"{name} was written by a newer ipyperplexity: its format version is {version}, "
            f"this one reads up to {VERSION}.",
            hint="Update: pip install -U ipyperplexity",
        )
    problem = ""
    try:
        return _answer(whole.get("answer"), "answer")
    except _Misfit as misfit:
        problem = str(misfit)
    _refuse(f"{name} is damaged: {problem}.")


def _parsed(document: bytes, name: str) -> Any:
    try:
        return json.loads(document.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = document.count(b"\n", 0, error.start) + 1
        problem = f"line {line} (byte {error.start}) is not UTF-8"
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at line {error.lineno}, column {error.colno}"
    except RecursionError:
        problem = "its JSON is nested too deeply"
    except ValueError as error:  # a number of more digits than Python reads
        problem = str(error)
    _refuse(f"{name} is damaged, or is no saved answer: {problem}.")


def _refuse(message: str, *, hint: str | None = None) -> NoReturn:
    raise InvalidRequestError(message, field="path", hint=hint)


# --- what fields are made of ---------------------------------------------------------------------


class _Misfit(ValueError):
    def __init__(self, path: str, expected: str, value: Any) -> None:
        super().__init__(f"{path} should be {expected}, and is {_shown(value)}")


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "missing"
    text = json.dumps(value) if not isinstance(value, dict | list) else type(value).__name__
    return text if len(text) <= 60 else text[:57] + "..."


_ABSENT: Any = object()


@dataclass(frozen=True)
class _Field:
    """How one kind of value is written, and how it is checked and read."""

    load: Callable[[Any, str], Any]
    dump: Callable[[Any], Any] = lambda value: value


def _plain(expected: str, *types: type) -> _Field:
    def load(value: Any, path: str) -> Any:
        # Not isinstance: True is an int to it.
        if type(value) not in types:
            raise _Misfit(path, expected, value)
        return value

    return _Field(load)


def _parsed_by(read: Callable[[str], Any], expected: str) -> _Field:
    def load(value: Any, path: str) -> Any:
        try:
            return read(_TEXT.load(value, path))
        except ValueError:
            raise _Misfit(path, expected, value) from None

    return _Field(load, lambda moment: moment.isoformat())


def _or_none(field: _Field) -> _Field:
    return _Field(
        lambda value, path: None if value is None else field.load(value, path),
        lambda value: None if value is None else field.dump(value),
    )


def _tuple_of(item: _Field) -> _Field:
    def load(value: Any, path: str) -> Any:
        items = _LIST.load(value, path)
        return tuple(item.load(one, f"{path}[{index}]") for index, one in enumerate(items))

    return _Field(load, lambda items: [item.dump(one) for one in items])


def _object_of(make: Callable[..., Any], fields: Mapping[str, _Field], *required: str) -> _Field:
    """An object with attributes: written whole, read as far as its fields are known and there."""

    def load(value: Any, path: str) -> Any:
        given = _OBJECT.load(value, path)
        for name in required:
            if name not in given:
                raise _Misfit(f"{path}.{name}", "there", _ABSENT)
        known = {
            name: field.load(given[name], f"{path}.{name}")
            for name, field in fields.items()
            if name in given
        }
        return make(**known)

    def dump(value: Any) -> dict[str, Any]:
        return {name: field.dump(getattr(value, name)) for name, field in fields.items()}

    return _Field(load, dump)


_TEXT = _plain("text", str)
_TEXT_OR_NONE = _plain("text or null", str, type(None))
_FLAG = _plain("true or false", bool)
_WHOLE = _plain("a whole number", int)
_COUNT = _plain("a whole number or null", int, type(None))
_SECONDS = _plain("a number", float, int)
_NUMBER = _plain("a number or null", float, int, type(None))
_OBJECT = _plain("an object", dict)
_LIST = _plain("a list", list)
_DAY = _or_none(_parsed_by(dt.date.fromisoformat, "a date such as 2026-01-05, or null"))
_MOMENT = _parsed_by(dt.datetime.fromisoformat, "a date and time in ISO 8601")


# --- the parts of an answer ----------------------------------------------------------------------

_SOURCE = _object_of(
    Source,
    {
        "id": _WHOLE,
        "title": _TEXT,
        "url": _TEXT,
        "domain": _TEXT,
        "published": _DAY,
        "updated": _DAY,
        "cited": _FLAG,
        "n_cited": _WHOLE,
        "snippet": _TEXT_OR_NONE,
        "kind": _TEXT,
    },
    "id",
    "title",
    "url",
)
_SOURCES = _object_of(
    lambda pages=(), fetched=(), unnumbered=None: Sources(
        pages, fetched=fetched, unnumbered=unnumbered
    ),
    {
        "pages": _tuple_of(_SOURCE),
        "fetched": _tuple_of(_WHOLE),
        "unnumbered": _tuple_of(_WHOLE),
    },
    "pages",
)


def _dump_sources(sources: Sources) -> dict[str, Any]:
    return {
        "pages": [_SOURCE.dump(source) for source in sources],
        "fetched": list(sources._fetched),
        "unnumbered": sorted(sources._unnumbered),
    }


_ERRORS: dict[str, type[PerplexityError]] = {
    cls.code: cls
    for cls in vars(errors).values()
    if isinstance(cls, type) and issubclass(cls, PerplexityError)
}


def _make_error(code: str, message: str, hint: str | None = None, **facts: Any) -> PerplexityError:
    # A code of a later version is at least an error.
    error = _ERRORS.get(code, PerplexityError)(message, **facts)
    error.hint = hint  # None is none, not the class's own
    return error


_ERROR = _object_of(
    _make_error,
    {
        "code": _TEXT,
        "message": _TEXT,
        "hint": _TEXT_OR_NONE,
        "field": _TEXT_OR_NONE,
        "status_code": _COUNT,
        "request_id": _TEXT_OR_NONE,
        "retry_after": _NUMBER,
    },
    "code",
    "message",
)


def _load_column(value: Any, path: str) -> tuple[str, Kind, bool]:
    kinds = get_args(Kind)
    if not (
        isinstance(value, list)
        and [type(part) for part in value] == [str, str, bool]
        and value[1] in kinds
    ):
        raise _Misfit(path, f"[name, kind, nullable], the kind one of {', '.join(kinds)}", value)
    name, kind, nullable = value
    return name, kind, nullable


_LAYOUT = _object_of(
    Layout,
    {
        "key": _TEXT_OR_NONE,
        "many": _FLAG,
        "columns": _tuple_of(_Field(_load_column, list)),
        "scalar": _FLAG,
    },
    "key",
    "many",
    "columns",
    "scalar",
)


def _dump_data(value: Any) -> Any:
    return json.loads(json.dumps(value, default=_simpler))


def _simpler(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, dt.date):
        return value.isoformat()
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise TypeError(f"a value of type {type(value).__name__}")


_TEXTS = _tuple_of(_TEXT)
_FIELDS: dict[str, _Field] = {
    "question": _TEXT,
    "text": _TEXT,
    "reasoning": _TEXT,
    "sources": _Field(_SOURCES.load, _dump_sources),
    "searches": _TEXTS,
    "images": _tuple_of(
        _object_of(
            Image,
            {"url": _TEXT, "page": _TEXT, "title": _TEXT, "width": _COUNT, "height": _COUNT},
            "url",
        )
    ),
    "related": _TEXTS,
    "data": _Field(lambda value, path: value, _dump_data),
    "data_layout": _or_none(_LAYOUT),
    "usage": _object_of(
        Usage,
        {
            "input_tokens": _COUNT,
            "output_tokens": _COUNT,
            "total_tokens": _COUNT,
            "reasoning_tokens": _COUNT,
            "searches": _COUNT,
            "cost_usd": _NUMBER,
        },
    ),
    "model": _TEXT_OR_NONE,
    "backend": _TEXT,
    "id": _TEXT_OR_NONE,
    "status": _TEXT,
    "finish_reason": _TEXT_OR_NONE,
    "truncated": _FLAG,
    "error": _or_none(_ERROR),
    "created": _MOMENT,
    "elapsed": _SECONDS,
    "first_text": _NUMBER,
    "cached": _FLAG,
    "raw": _OBJECT,
    "turns": _tuple_of(_object_of(Turn, {"question": _TEXT, "text": _TEXT}, "question", "text")),
    "options": _OBJECT,
    "warnings": _TEXTS,
    "tool_calls": _tuple_of(
        _object_of(
            ToolCall,
            {
                "name": _TEXT,
                "arguments": _TEXT,
                "output": _TEXT,
                "error": _TEXT_OR_NONE,
                "elapsed": _SECONDS,
                "traceback": _TEXT_OR_NONE,
            },
            "name",
            "arguments",
        )
    ),
    "stored": _FLAG,
}
_answer: Callable[[Any, str], dict[str, Any]]
_answer = _object_of(dict, _FIELDS, "question", "text").load
