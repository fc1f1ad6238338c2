"""What is asked about each row: a template over the columns, or a function of a row.

Invariant: a template that could not be right for any row is refused when it is made; whatever is
wrong with one row is an InvalidRequestError of that row, and of no other kind. In a template
``{column}`` is the row's value, ``{column:.2f}`` a formatted one, ``{{`` and ``}}`` are braces;
nothing is looked up in a value, and nothing is called.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ipyperplexity.batch.value_text import formatted, value_text
from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.option_checks import did_you_mean, refuse, shown
from ipyperplexity.question import Question
from ipyperplexity.secret_patterns import hide_secrets
from ipyperplexity.tabular.plain_values import plain_value

#: Characters that one question may have.
MAX_CHARACTERS = 200_000
_MAX_NAMES = 20
_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
#: A width of seven digits is longer than any question.
_TOO_WIDE = re.compile(r"\d{7}", re.ASCII)
_LITERAL = "A brace that is meant as such is written twice: {{ and }}."
_ALLOWED = "a text with columns in braces, or a function of a row"


@dataclass(frozen=True)
class _Field:
    """A place in a template for the value of a column."""

    column: str
    spec: str = ""


@dataclass(frozen=True)
class Prompt:
    """What is asked about each row.

    Attributes
    ----------
    columns : tuple of str
        Those that the template names, each once; empty for a function.

    Examples
    --------
    >>> prompt = Prompt.of("Who ran {company} in {year}?", ("company", "year"))
    >>> prompt.question({"company": "Lego", "year": 1932.0})
    'Who ran Lego in 1932?'
    """

    columns: tuple[str, ...]
    _write: Callable[[Mapping[str, Any]], Any] = field(repr=False)

    @classmethod
    def of(cls, prompt: Any, columns: Iterable[str]) -> Prompt:
        """Return the prompt, checked.

        Parameters
        ----------
        prompt : str, callable or None
            A template; a function that is given a row as a dict and returns a text or a Question;
            or None if there is one column, whose values are the questions.
        columns : iterable of str
            Of the data. Without any, as of an empty list, any column may be named.

        Returns
        -------
        Prompt

        Raises
        ------
        InvalidRequestError
            The template names a column that there is not, or none at all, or its braces are not
            in pairs; the error's field is ``"prompt"``.
        """
        names = tuple(columns)
        if prompt is None:
            if len(names) > 1:
                raise _refusal(f"got None; allowed: {_ALLOWED}", _columns_hint(names))
            return cls(names, lambda row: _fill([_Field(name) for name in names or row], row))
        if isinstance(prompt, str):
            pieces = _parse(str.__str__(prompt), names)
            used = dict.fromkeys(p.column for p in pieces if isinstance(p, _Field))
            return cls(tuple(used), lambda row: _fill(pieces, row))
        if not callable(prompt):
            raise refuse("prompt", prompt, _ALLOWED)
        if inspect.iscoroutinefunction(prompt):
            raise _refusal("got an async function; allowed: one that returns a text or a Question")
        return cls((), lambda row: _call(prompt, row))

    def question(self, row: Mapping[str, Any]) -> str | Question:
        """Return what to ask about one row.

        Parameters
        ----------
        row : mapping
            Column -> value.

        Raises
        ------
        InvalidRequestError
            A value is missing or cannot be written, the function failed, or the question is blank
            or longer than ``MAX_CHARACTERS``.
        """
        asked = self._write(row)
        if not isinstance(asked, str | Question):
            if inspect.iscoroutine(asked):
                asked.close()
            raise _refusal(
                f"the function returned {shown(asked)}; allowed: a text that is not blank, or a "
                "Question"
            )
        text = asked.text if isinstance(asked, Question) else str.__str__(asked)
        if len(text) > MAX_CHARACTERS:
            raise InvalidRequestError(
                f"question: it has {len(text):,} characters; allowed: at most {MAX_CHARACTERS:,}.",
                field="question",
                hint="Put in less, such as {notes:.1000} for the first 1,000 characters.",
            )
        if not text.strip():
            raise InvalidRequestError("question: it is blank in this row.", field="question")
        return asked if isinstance(asked, Question) else text


def _refusal(problem: str, hint: str | None = None) -> InvalidRequestError:
    return InvalidRequestError(f"prompt: {problem}.", field="prompt", hint=hint)


def _columns_hint(columns: tuple[str, ...]) -> str:
    shown_names = ", ".join(f"{{{name}}}" for name in columns[:_MAX_NAMES])
    more = len(columns) - _MAX_NAMES
    return f"Columns: {shown_names}{f' and {more:,} more' if more > 0 else ''}."


# --- templates -----------------------------------------------------------------------------------


def _parse(template: str, columns: tuple[str, ...]) -> list[str | _Field]:
    pieces: list[str | _Field] = []
    end = 0
    for match in _PIECE.finditer(template):
        pieces.append(template[end : match.start()])
        end = match.end()
        if match[1] is not None:
            pieces.append(_field(match[1], columns))
        elif len(match[0]) == 2:
            pieces.append(match[0][0])
        else:
            lacks = "closed" if match[0] == "{" else "opened"
            raise _refusal(
                f"the {match[0]!r} at character {match.start() + 1} is not {lacks}: "
                f"{shown(template[match.start() :])}",
                _LITERAL,
            )
    if not any(isinstance(piece, _Field) for piece in pieces):
        raise _names_no_column(template, columns)
    return [*pieces, template[end:]]


def _names_no_column(template: str, columns: tuple[str, ...]) -> InvalidRequestError:
    doubled = next((name for name in columns if f"{{{{{name}}}}}" in template), None)
    if doubled is not None:
        hint = f"{{{{{doubled}}}}} means the braces themselves; the column is {{{doubled}}}."
    elif template.strip() in columns:
        hint = f"For the texts of that column: {{{template.strip()}}}."
    else:
        hint = _columns_hint(columns) if columns else "A column is put in braces: {value}."
    return _refusal("it names no column, so that each row would ask the same", hint)


def _field(inside: str, columns: tuple[str, ...]) -> _Field:
    """Return what ``{inside}`` means: a column whole, or one with a format specification."""
    colons = [place for place, char in enumerate(inside) if char == ":"]
    # The longest name first: a column may have a colon in its name.
    for place in (len(inside), *reversed(colons)):
        name, spec = inside[:place], inside[place + 1 :]
        for candidate in (name, name.strip()):
            if candidate in columns:
                _check_spec(candidate, spec)
                return _Field(candidate, spec)
    name, _, spec = inside.partition(":")
    name = name.strip()
    if not columns and name:
        return _Field(name, spec)
    hint = f"{_columns_hint(columns)} {_LITERAL}" if columns else _LITERAL
    raise _refusal(f"there is no column {shown(name)}{_nearest(name, columns)}", hint)


def _nearest(name: str, columns: Iterable[str]) -> str:
    same = [column for column in columns if column.casefold() == name.casefold()]
    return did_you_mean(same[0] if same else name, columns)


def _check_spec(column: str, spec: str) -> None:
    place = f"{{{column}:{shown(spec)[1:-1]}}}"
    if _TOO_WIDE.search(spec):
        raise _refusal(f"{place} is wider than a question may be")
    if spec and "%" not in spec and not any(map(_takes(spec), _SAMPLES)):
        raise _refusal(
            f"{shown(spec)} is no format specification, in {place}",
            "Good ones: {price:.2f}, {share:.1%}, {day:%d %B %Y}, {notes:.1000}.",
        )


#: A specification that fits none of these fits nothing. A date takes any text with a % in it.
_SAMPLES: tuple[Any, ...] = (1, 1.5, Decimal(1), "text")


def _takes(spec: str) -> Callable[[Any], bool]:
    def takes(value: Any) -> bool:
        try:
            format(value, spec)
        except (ValueError, TypeError, OverflowError):
            return False
        return True

    return takes


def _fill(pieces: Sequence[str | _Field], row: Mapping[str, Any]) -> str:
    texts = [piece if isinstance(piece, str) else _written(piece, row) for piece in pieces]
    values = [text for text, piece in zip(texts, pieces, strict=True) if isinstance(piece, _Field)]
    if not any(value.strip() for value in values):
        names = ", ".join(dict.fromkeys(p.column for p in pieces if isinstance(p, _Field)))
        raise InvalidRequestError(f"{names}: nothing to ask about, it is blank.", field=names)
    return "".join(texts)


def _written(place: _Field, row: Mapping[str, Any]) -> str:
    problem = ""
    try:
        value = plain_value(row.get(place.column))
        if value is not None:
            return formatted(value, place.spec) if place.spec else value_text(value)
    except Exception as error:
        problem = _in_words(error)
    if problem:
        how = f" as {{{place.column}:{place.spec}}}" if place.spec else ""
        raise InvalidRequestError(
            f"{place.column}: this row's value cannot be written{how} ({problem}).",
            field=place.column,
        )
    raise InvalidRequestError(
        f"{place.column}: this row has no value.",
        field=place.column,
        hint="Fill in what is missing, if it may be: with an empty text, or with a word for it.",
    )


# --- functions -----------------------------------------------------------------------------------


def _call(function: Callable[[dict[str, Any]], Any], row: Mapping[str, Any]) -> Any:
    try:
        return function(dict(row))
    except InvalidRequestError as error:
        # As of a Question that it makes; without the frames, and what it was raised from.
        refusal = InvalidRequestError(error.message, field=error.field, hint=error.hint)
    except Exception as error:
        refusal = _function_failed(error, row)
    raise refusal


def _function_failed(error: Exception, row: Mapping[str, Any]) -> InvalidRequestError:
    near, hint = "", None
    key = error.args[0] if isinstance(error, KeyError) and error.args else None
    if isinstance(key, str) and key not in row:
        near, hint = _nearest(key, row), _columns_hint(tuple(row))
    elif isinstance(error, AttributeError) and isinstance(error.obj, dict):
        hint = "A row is a dict: row['company'], not row.company."
    return _refusal(f"the function failed with {_in_words(error)}{near}", hint)


def _in_words(error: Exception) -> str:
    """Return an error's type and message on one line."""
    try:
        message = hide_secrets(" ".join(str(error).split()))[:200]
    except Exception:
        message = ""
    name = type(error).__name__
    return f"{name}: {message}" if message else name
