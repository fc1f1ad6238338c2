"""From the texts of one column to a typed column: numbers, dates, or text.

Invariant: a column is typed only if *every* cell reads as that type in one way; one doubtful cell
leaves the whole column as text, so nothing that the text says is lost or guessed. Arithmetic is
decimal: ``1.2M`` is exactly 1200000.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from ipyperplexity.tabular.cells import Kind

MISSING = frozenset({"", "-", "--", "\u2013", "\u2014", "n/a", "n.a."})
# These are missing among numbers and dates, and words (or chemical elements) among words.
_MISSING_NUMBER = MISSING | {"na", "nan", "none", "null"}


@dataclass(frozen=True)
class Inferred:
    """A column as it was understood.

    Attributes
    ----------
    kind : Kind
        ``int64``, ``float64``, ``date`` or ``str``.
    values : list
        ``None`` where the cell is empty or says so (``n/a``, ``-``, ``—``).
    unit : str or None
        What all numbers carried: ``%``, a currency sign or code. Percentages stay as written:
        ``45%`` is 45.
    """

    kind: Kind
    values: list[Any]
    unit: str | None = None


def infer_column(cells: Sequence[str]) -> Inferred:
    """Type a column of texts.

    Examples
    --------
    >>> infer_column(["$1,234", "$2.5M", "n/a"])
    Inferred(kind='int64', values=[1234, 2500000, None], unit='$')
    >>> infer_column(["March 3, 2024", "2024-03-04"]).kind
    'date'
    >>> infer_column(["5-7", "8"]).kind
    'str'
    """
    for read in (_as_numbers, _as_dates):
        typed = read(cells)
        if typed is not None:
            return typed
    return Inferred("str", [None if c.strip().casefold() in MISSING else c for c in cells])


def _present(cells: Sequence[str]) -> list[str | None]:
    stripped = [cell.strip() for cell in cells]
    return [None if cell.casefold() in _MISSING_NUMBER else cell for cell in stripped]


# --- numbers -----------------------------------------------------------------------------------

_CODES = (
    "USD|EUR|GBP|JPY|CNY|RMB|INR|CHF|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|RON|BGN|TRY|RUB|UAH|ILS|"
    "BRL|MXN|ARS|CLP|COP|PEN|ZAR|NGN|KES|EGP|SAR|AED|QAR|KWD|KRW|TWD|HKD|SGD|THB|IDR|MYR|PHP|VND|"
    "PKR|BDT|LKR|BTC|ETH"
)
_CURRENCY = rf"(?:US|AU|CA|NZ|HK|SG|A|C|S|R)?\$|[€£¥₹₩₽₺₿฿₫₴₦₪₱₡₲₵₸]|{_CODES}"
_SPACE = "[ \u00a0\u2009\u202f]"
_NUMBER = re.compile(
    rf"""
    (?P<open>\()? (?P<sign>[+\-\u2212\u2013])? (?P<before>(?:{_CURRENCY}){_SPACE}?)?
    (?P<open2>\()? (?P<sign2>[+\-\u2212\u2013])?
    (?P<digits>(?:\d|\.\d) (?:[\d.,'\u2019] | {_SPACE}(?=\d))*)
    (?P<exponent>[eE][+-]?\d{{1,3}})?
    {_SPACE}? (?P<scale>[A-Za-z]+?)??
    {_SPACE}? (?P<after>%|{_CURRENCY})?
    (?P<close>\))?
    """,
    re.VERBOSE | re.ASCII,
)
_SCALES = {
    "k": 3, "K": 3, "thousand": 3,
    "M": 6, "mn": 6, "Mn": 6, "mln": 6, "million": 6, "Million": 6,
    "B": 9, "bn": 9, "Bn": 9, "BN": 9, "bln": 9, "billion": 9, "Billion": 9,
    "tn": 12, "Tn": 12, "trillion": 12, "Trillion": 12,
}  # fmt: skip
# Beside a currency these cannot be meters, bits or tonnes.
_MONEY_SCALES = _SCALES | {"m": 6, "b": 9, "t": 12, "T": 12, "MM": 6}

_PLAIN = re.compile(r"(?:0|[1-9]\d*)?(?:\.\d+)?", re.ASCII)
_GROUPED = re.compile(
    rf"[1-9]\d{{0,2}}(?:(?:,\d{{3}})+|(?:{_SPACE}\d{{3}})+|(?:['\u2019]\d{{3}})+)(?:\.\d+)?"
    rf"|[1-9]\d?(?:,\d{{2}})+,\d{{3}}(?:\.\d+)?",  # 12,34,567: India
    re.ASCII,
)
_DECIMAL_COMMA = re.compile(
    rf"(?:0|[1-9]\d*|[1-9]\d{{0,2}}(?:(?:\.\d{{3}})+|(?:{_SPACE}\d{{3}})+))(?:,\d+)?", re.ASCII
)
_GROUP_MARKS = re.compile(rf"{_SPACE}|['\u2019]")
# What only a writer with decimal commas, or only one with decimal points, would put down.
_SURE_COMMA = re.compile(
    rf"\d+(?:\.\d{{3}})+,\d+|\d+(?:\.\d{{3}}){{2,}}|\d+(?:{_SPACE}\d{{3}})+,\d+|0,\d+", re.ASCII
)
_LIKELY_COMMA = re.compile(r"\d+,(?:\d{1,2}|\d{4,})", re.ASCII)
_SURE_POINT = re.compile(
    rf"\d+(?:,\d{{2,3}})+\.\d+|\d+(?:,\d{{2,3}}){{2,}}|\d+(?:{_SPACE}\d{{3}})+\.\d+"
    r"|0?\.\d+|[1-9]\d*\.(?:\d{1,2}|\d{4,})",
    re.ASCII,
)


@dataclass(frozen=True)
class _Number:
    digits: str
    negative: bool
    power: int
    unit: str | None
    scientific: bool


def _read_number(cell: str) -> _Number | None:
    match = _NUMBER.fullmatch(cell)
    if match is None:
        return None
    opened = (match["open"] is not None) + (match["open2"] is not None)
    signs = (match["sign"] or "") + (match["sign2"] or "")
    if opened != (match["close"] is not None) or len(signs) > 1 or (opened and signs):
        return None
    before, after = (match["before"] or "").strip(), match["after"]
    if before and after:
        return None
    unit = before or after or None
    scales = _SCALES if unit in (None, "%") else _MONEY_SCALES
    power = int((match["exponent"] or "e0")[1:])
    if match["scale"]:
        if match["scale"] not in scales or match["exponent"]:
            return None
        power = scales[match["scale"]]
    negative = bool(opened) or signs not in ("", "+")
    return _Number(match["digits"], negative, power, unit, match["exponent"] is not None)


def _as_numbers(cells: Sequence[str]) -> Inferred | None:
    numbers: list[_Number | None] = []
    for cell in _present(cells):
        number = None if cell is None else _read_number(cell)
        if cell is not None and number is None:
            return None
        numbers.append(number)
    known = [number for number in numbers if number is not None]
    if _are_versions([number.digits for number in known]):
        return None
    # A bare 0 among amounts is still an amount.
    units = {number.unit for number in known if number.unit or number.digits != "0"}
    if not known or len(units) > 1:
        return None
    to_decimal = _decimal_reader(known)
    if to_decimal is None:
        return None
    values: list[Decimal | None] = []
    for number in numbers:
        value = None if number is None else to_decimal(number)
        if number is not None and value is None:
            return None
        values.append(value)
    unit = next(iter(units), None)
    present = [value for value in values if value is not None]
    if all(_is_whole(value) for value in present) and not any(n.scientific for n in known):
        # A number of more digits is an identifier, and a float would lose some of them.
        if any(value.adjusted() > 18 or not -(2**63) <= int(value) < 2**63 for value in present):
            return None
        return Inferred("int64", [None if v is None else int(v) for v in values], unit)
    floats = [None if value is None else float(value) for value in values]
    finite = all(abs(value) != float("inf") for value in floats if value is not None)
    return Inferred("float64", floats, unit) if finite else None


def _are_versions(digits: Sequence[str]) -> bool:
    """Whether these count on after the point: 3.8, 3.9, 3.10 (which as a number is 3.1)."""
    parts = [text.partition(".") for text in digits]
    lengths = {len(after) for _, _, after in parts}
    return (
        len({before for before, _, _ in parts}) == 1
        and lengths == {1, 2}
        and any(len(after) == 2 and after.endswith("0") for _, _, after in parts)
    )


def _is_whole(value: Decimal) -> bool:
    exponent = value.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= 0


def _decimal_reader(numbers: Sequence[_Number]) -> Callable[[_Number], Decimal | None] | None:
    """Decide once for the column whether a comma or a point is the decimal mark."""
    comma = any(
        _SURE_COMMA.fullmatch(n.digits) or (n.unit and _LIKELY_COMMA.fullmatch(n.digits))
        for n in numbers
    )
    point = any(_SURE_POINT.fullmatch(n.digits) for n in numbers)
    if comma and point:
        return None

    def read(number: _Number) -> Decimal | None:
        digits = number.digits
        if comma:
            if not _DECIMAL_COMMA.fullmatch(digits):
                return None
            digits = _GROUP_MARKS.sub("", digits).replace(".", "").replace(",", ".")
        else:
            # A leading zero makes an identifier, which neither pattern takes.
            if not (_PLAIN.fullmatch(digits) or _GROUPED.fullmatch(digits)):
                return None
            digits = _GROUP_MARKS.sub("", digits).replace(",", "")
        exact = Decimal(digits)
        _, figures, exponent = exact.as_tuple()
        assert isinstance(exponent, int)
        # Not scaleb(): that rounds to the context's precision.
        return Decimal((int(number.negative), figures, exponent + number.power))

    return read


# --- dates -------------------------------------------------------------------------------------

_MONTH_NAMES = (
    ("january", "jan"), ("february", "feb"), ("march", "mar"), ("april", "apr"), ("may",),
    ("june", "jun"), ("july", "jul"), ("august", "aug"), ("september", "sept", "sep"),
    ("october", "oct"), ("november", "nov"), ("december", "dec"),
)  # fmt: skip
_MONTHS = {name: month for month, names in enumerate(_MONTH_NAMES, start=1) for name in names}
_MONTH = "(?P<month>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_WEEKDAY = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s+)?"
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE | re.ASCII)
    for pattern in (
        r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})",
        rf"{_WEEKDAY}{_MONTH}\s+{_DAY},?\s+(?P<year>\d{{4}})",
        rf"{_WEEKDAY}{_DAY}\s+{_MONTH},?\s+(?P<year>\d{{4}})",
    )
)


def _read_date(cell: str) -> date | None:
    for pattern in _DATES:
        match = pattern.fullmatch(cell)
        if match is None:
            continue
        month = match["month"].casefold()
        try:
            return date(int(match["year"]), _MONTHS.get(month) or int(month), int(match["day"]))
        except ValueError:  # February 30
            return None
    return None


def _as_dates(cells: Sequence[str]) -> Inferred | None:
    present = _present(cells)
    dates = [None if cell is None else _read_date(cell) for cell in present]
    found = any(day is not None for day in dates)
    if not found or any(c is not None and d is None for c, d in zip(present, dates, strict=True)):
        return None
    return Inferred("date", dates)
