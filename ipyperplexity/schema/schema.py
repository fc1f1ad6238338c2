"""The public face of this room: `Schema`, the form that a structured answer has to have.

The JSON schema that is sent and the loader that checks and converts come from one walk over what
the user gave, so they cannot disagree.
"""

from __future__ import annotations

import copy
import hashlib
import json
from typing import Any

from ipyperplexity.schema.frame import ColumnTriple, layout_of, rows_of
from ipyperplexity.schema.reading import read
from ipyperplexity.schema.refusal import refusal
from ipyperplexity.schema.root import compile_root


class Schema:
    """The form that a structured answer has to have; made with `Schema.of`.

    Two schemas are equal if their JSON schemas are. A schema can be pickled if the types it was
    made of can be imported.

    Attributes
    ----------
    name : str
        What the service is told: 1-64 characters of ``A-Z a-z 0-9 _ -``.
    json_schema : dict
        A copy of the JSON schema that is sent.

    Examples
    --------
    >>> schema = Schema.of({"name": str, "founded": (int, "year it was founded")})
    >>> schema.parse('Here it is: {"name": "Dune Inc.", "founded": 1965.0} [1]')
    {'name': 'Dune Inc.', 'founded': 1965}
    >>> schema.columns()
    [('name', 'str', False), ('founded', 'int64', False)]
    """

    __slots__ = ("_root", "_spec", "layout", "name")

    name: str

    def __init__(self, spec: Any) -> None:
        self._spec = copy.deepcopy(spec) if isinstance(spec, dict | list) else spec
        self._root = compile_root(self._spec)
        self.layout = layout_of(self._root.value_schema, self._root.document)
        self.name = self._root.name

    @classmethod
    def of(cls, spec: Any) -> Schema:
        """Make a schema of what a user finds natural to give.

        Parameters
        ----------
        spec : type, dict or list
            A dataclass, TypedDict or pydantic (v2) model; a JSON schema dict, or a whole
            ``response_format`` dict; a short form ``{field: form}``; a list of one of them
            (``list[X]`` or ``[X]``); or a scalar type. A form in a short form is a type, a nested
            short form, ``[form]``, ``(form, "description")``, or a string: the description of a
            text field, except that the bare name of a type (``"int"``, ``"date"``, ``"integer"``
            ...) is that type. Field descriptions come from ``Annotated[X, "..."]`` or
            ``field(metadata={"description": "..."})``. A field with a default may be left out by
            the service and then has its default.

        Returns
        -------
        Schema
            A root that is no object is sent as ``{"items": [...]}`` (lists) or
            ``{"answer": ...}``; `parse` takes that off again.

        Raises
        ------
        InvalidRequestError
            The form, or a member of it, is none of these; the message says where.

        Notes
        -----
        A dict of plain JSON is a JSON schema, and no short form, if it has a key with ``$``, or
        ``properties`` (all schemas), ``anyOf``/``oneOf``/``allOf`` (all schemas), a non-empty list
        as ``enum``, or a JSON type name as ``type``; unless it also has keys that JSON schema does
        not know (and is not of type ``object`` or ``array``). So ``{"type": "string"}`` is a JSON
        schema, ``{"type": str}`` and ``{"type": "kind of company"}`` are short forms. In doubt,
        give types instead of strings.

        Examples
        --------
        >>> Schema.of(list[str]).parse('{"items": ["a", "b"]}')
        ['a', 'b']
        >>> Schema.of({"hq": "city, country"}).json_schema["properties"]
        {'hq': {'type': 'string', 'description': 'city, country'}}
        """
        if isinstance(spec, cls):
            return spec
        try:
            return cls(spec)
        except RecursionError:
            raise refusal("", "a form that contains itself") from None

    @property
    def json_schema(self) -> dict[str, Any]:
        """A copy of the JSON schema that is sent."""
        return copy.deepcopy(self._root.document)

    def response_format(self) -> dict[str, Any]:
        """Return the request field of this name (official-api 2.1).

        ``strict`` is true wherever the JSON schema keeps the rules of strict structured outputs:
        for all Python types, and for a user's JSON schema that forbids additional properties and
        requires all it names.
        """
        inner = {"name": self.name, "schema": self.json_schema, "strict": self._root.strict}
        return {"type": "json_schema", "json_schema": inner}

    def fingerprint(self) -> str:
        """Return the SHA-256 of the JSON schema, in hex: the same in every process."""
        text = json.dumps(self._root.document, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def parse(self, text: str) -> Any:
        """Return the value that an answer's text holds, checked and converted.

        A byte order mark, leading ``<think>`` blocks, a code fence, prose around the JSON and
        citation markers after it are passed over. The first JSON value that fits is taken.

        Parameters
        ----------
        text : str
            The answer's text.

        Returns
        -------
        object
            An instance of the dataclass or model; else a dict, list or scalar, with dates, Enum
            members and whole numbers where the form says so.

        Raises
        ------
        SchemaMismatch
            No value fits.

        Examples
        --------
        >>> Schema.of(int).parse('{"answer": 42}')
        42
        """
        return read(text, self._root.load, self._root.load_bare)

    def columns(self) -> list[ColumnTriple]:
        """Return name, kind and nullability of each column of a parsed value's frame.

        An object is one row; a list, or an object whose only field is a list of objects, is one
        row an item. Scalars are in a column ``answer``, a list's scalars in ``item``. What is
        nested deeper is a column of JSON text.

        Examples
        --------
        >>> Schema.of([{"name": str, "tags": [str]}]).columns()
        [('name', 'str', False), ('tags', 'str_list', False)]
        """
        return list(self.layout.columns)

    def rows(self, value: Any) -> list[dict[str, Any]]:
        """Return the rows of a parsed value, with the keys that `columns` names.

        Examples
        --------
        >>> schema = Schema.of({"a": {"b": int}})
        >>> schema.rows(schema.parse('{"a": {"b": 1}}'))
        [{'a': '{"b": 1}'}]
        """
        return rows_of(value, self.layout)

    def __eq__(self, other: object) -> bool:
        return self.fingerprint() == other.fingerprint() if isinstance(other, Schema) else False

    def __hash__(self) -> int:
        return hash(self.fingerprint())

    def __reduce__(self) -> tuple[Any, ...]:
        return Schema.of, (self._spec,)

    def __repr__(self) -> str:
        names = ", ".join(name for name, _, _ in self.layout.columns)
        return f"Schema({self.name}: {names})"
