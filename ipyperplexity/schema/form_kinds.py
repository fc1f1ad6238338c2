"""The kinds of form that a user may give: how each is recognized, and who reads it."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import types
from collections.abc import Callable
from typing import Annotated, Any, Literal, Union, get_origin

from ipyperplexity.schema.compiler import Compiler, FormKind, Node, Reader
from ipyperplexity.schema.embedding import is_model, read_model
from ipyperplexity.schema.object_forms import (
    is_typed_dict,
    read_dataclass,
    read_dict,
    read_typed_dict,
)
from ipyperplexity.schema.value_forms import (
    SCALARS,
    read_annotated,
    read_enum,
    read_list,
    read_literal,
    read_pair,
    read_scalar,
    read_text,
    read_union,
)


def is_class(form: Any) -> bool:
    # list[int] passes isinstance(..., type) in Python 3.11.
    return isinstance(form, type) and get_origin(form) is None


def _is_scalar(form: Any) -> bool:
    return form is None or (is_class(form) and form in SCALARS)


def _instance_of(cls: type) -> Callable[[Any], bool]:
    return lambda form: isinstance(form, cls)


def _class_that(fits: Callable[[type], bool]) -> Callable[[Any], bool]:
    return lambda form: is_class(form) and fits(form)


_GENERICS: dict[Any, Reader] = {
    list: read_list,
    tuple: read_list,
    collections.abc.Sequence: read_list,
    Union: read_union,
    types.UnionType: read_union,
    Literal: read_literal,
    Annotated: read_annotated,
}


def _is_generic(form: Any) -> bool:
    return get_origin(form) in _GENERICS


def _read_generic(compiler: Compiler, form: Any, where: str) -> Node:
    return _GENERICS[get_origin(form)](compiler, form, where)


#: The first kind that fits has the form.
FORM_KINDS: tuple[FormKind, ...] = (
    (_is_scalar, read_scalar),
    (_instance_of(str), read_text),
    (_instance_of(tuple), read_pair),
    (_instance_of(list), read_list),
    (_instance_of(dict), read_dict),
    (_is_generic, _read_generic),
    (_class_that(lambda cls: issubclass(cls, enum.Enum)), read_enum),
    (_class_that(is_model), read_model),
    (_class_that(dataclasses.is_dataclass), read_dataclass),
    (_class_that(is_typed_dict), read_typed_dict),
)
