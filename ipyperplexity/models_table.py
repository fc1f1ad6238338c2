"""What may be asked: presets and models as one table, with prices and what each cost last."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, overload

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.markup.links import one_line
from ipyperplexity.tabular.columns import Column, Columns
from ipyperplexity.tabular.framed import Framed


@dataclass(frozen=True)
class ModelInfo:
    """A preset or a model that a question may name.

    Attributes
    ----------
    name : str
        As in ``model=``.
    kind : str
        ``preset`` (the service chooses the model, and changes its choice without notice) or
        ``model``.
    owner : str or None
        Who makes the model.
    input_usd_per_1m, output_usd_per_1m : float or None
        US dollars for a million tokens read and written; a preset has no price of its own.
    cache_read_usd_per_1m, cache_write_usd_per_1m : float or None
        The same for tokens that the service keeps between questions.
    created : datetime.datetime or None
        When the service began to list it.
    last_cost_usd : float or None
        What the newest question to it cost on this machine.
    last_asked : datetime.datetime or None
        When that was.
    label : str or None
        What it is called where people choose it, if that is another word.

    Examples
    --------
    >>> ModelInfo("low", "preset").input_usd_per_1m is None
    True
    """

    name: str
    kind: str = "model"
    owner: str | None = None
    input_usd_per_1m: float | None = None
    output_usd_per_1m: float | None = None
    cache_read_usd_per_1m: float | None = None
    cache_write_usd_per_1m: float | None = None
    created: dt.datetime | None = None
    last_cost_usd: float | None = None
    last_asked: dt.datetime | None = None
    label: str | None = None


MODEL_SCHEMA = (
    Column("name", "str"),
    Column("kind", "str"),
    Column("owner", "str"),
    Column("input_usd_per_1m", "float64"),
    Column("output_usd_per_1m", "float64"),
    Column("cache_read_usd_per_1m", "float64"),
    Column("cache_write_usd_per_1m", "float64"),
    Column("created", "timestamp"),
    Column("last_cost_usd", "float64"),
    Column("last_asked", "timestamp"),
    Column("label", "str"),
)
#: What a display shows; frames have all.
SHOWN_ROWS = 200
_SHOWN = ("name", "kind", "input_usd_per_1m", "output_usd_per_1m", "last_cost_usd", "last_asked")
#: name -> what its newest question cost in US dollars, and when it was asked.
LastCosts = Mapping[str, tuple[float | None, dt.datetime | None]]


class Models(Framed):
    """Presets and models as a table that frame libraries take as it is: one row each.

    ``[0]`` is the first ModelInfo, ``[:3]`` a table of the first three, ``["name"]`` a column's
    list; ``get("low")`` finds one by its name.

    Parameters
    ----------
    infos : iterable of ModelInfo
        In the order in which to list them; of a name that comes twice the first is kept.
    last_costs : mapping, optional
        Name -> ``(cost_usd, asked)`` of the newest question to it; other names are ignored.

    Examples
    --------
    >>> models = Models([ModelInfo("low", "preset"), ModelInfo("openai/gpt-6-luna")],
    ...                 {"low": (0.004, dt.datetime(2026, 10, 9, tzinfo=dt.UTC))})
    >>> models["last_cost_usd"]
    [0.004, None]
    >>> models.presets["name"]
    ['low']
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, infos: Iterable[ModelInfo] = (), last_costs: LastCosts | None = None
    ) -> None:
        by_name: dict[str, ModelInfo] = {}
        for info in infos:
            if not isinstance(info, ModelInfo):
                raise InvalidRequestError(
                    f"models: got a value of type {type(info).__name__}; allowed: ModelInfo.",
                    field="models",
                )
            by_name.setdefault(info.name, info)
        for name, (cost, asked) in (last_costs or {}).items():
            if name in by_name:
                by_name[name] = replace(by_name[name], last_cost_usd=cost, last_asked=asked)
        self._infos = tuple(by_name.values())

    def __len__(self) -> int:
        return len(self._infos)

    def __iter__(self) -> Iterator[ModelInfo]:
        return iter(self._infos)

    @overload
    def __getitem__(self, key: int) -> ModelInfo: ...
    @overload
    def __getitem__(self, key: slice) -> Models: ...
    @overload
    def __getitem__(self, key: str) -> list[Any]: ...
    def __getitem__(self, key: int | slice | str) -> ModelInfo | Models | list[Any]:
        """``[0]`` is the first ModelInfo, ``[:3]`` the first three, ``["name"]`` a column."""
        if isinstance(key, str):
            return self._columns().column(key)
        if isinstance(key, slice):
            return Models(self._infos[key])
        return self._infos[key]

    def __eq__(self, other: object) -> bool:
        return self._infos == other._infos if isinstance(other, Models) else NotImplemented

    def get(self, name: str) -> ModelInfo | None:
        """Return the preset or model of that name, or None."""
        return next((info for info in self._infos if info.name == name), None)

    @property
    def presets(self) -> Models:
        """The presets alone."""
        return Models(info for info in self._infos if info.kind == "preset")

    def _columns(self) -> Columns:
        names = [column.name for column in MODEL_SCHEMA]
        return Columns(
            MODEL_SCHEMA, {name: [getattr(info, name) for info in self._infos] for name in names}
        )

    def _shown(self) -> list[str]:
        """Return the names of the columns that a display shows."""
        labelled = any(info.label for info in self._infos)
        return ["label" if labelled and name == "kind" else name for name in _SHOWN]

    def _heads(self) -> list[str]:
        """Return the names that a display gives them; their unit stands in the summary."""
        return [*self._shown()[:2], "input", "output", "last cost", "last asked"]

    def _summary(self) -> str:
        n_presets = sum(info.kind == "preset" for info in self._infos)
        n_models = len(self) - n_presets
        return (
            f"{n_presets} preset{'' if n_presets == 1 else 's'}, "
            f"{n_models:,} model{'' if n_models == 1 else 's'}; prices in USD per million tokens"
        )

    def __repr__(self) -> str:
        from ipyperplexity.markup import terminal

        rows = [
            [_cell(getattr(info, name)) for name in self._shown()]
            for info in self._infos[:SHOWN_ROWS]
        ]
        heads = self._heads()
        table = [heads, *([one_line(terminal.strip_controls(c)) for c in row] for row in rows)]
        widths = [max(terminal.display_width(row[i]) for row in table) for i in range(len(heads))]
        lines = [
            "  ".join(
                cell + " " * (width - terminal.display_width(cell))
                if left
                else " " * (width - terminal.display_width(cell)) + cell
                for cell, width, left in zip(row, widths, _LEFT, strict=True)
            ).rstrip()
            for row in table
        ]
        more = len(self) - SHOWN_ROWS
        hidden = [f"... and {more:,} more; to_pandas() has all"] if more > 0 else []
        return "\n".join([f"Models({self._summary()})", *(lines if self._infos else []), *hidden])

    def _repr_html_(self) -> str:
        from ipyperplexity.markup import page

        rows = [
            [getattr(info, name) for name in self._shown()] for info in self._infos[:SHOWN_ROWS]
        ]
        return page.data_table(
            self._heads(),
            rows,
            total=len(self),
            row_heads=True,
            label=self._summary(),
            folded=False,
        )


#: Whether a shown column stands to the left.
_LEFT = (True, True, False, False, False, True)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dt.datetime):
        return _time(value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _time(value: dt.datetime) -> str:
    """Return a time as the clock on the wall here shows it."""
    return f"{value.astimezone():%Y-%m-%d %H:%M}"
