"""A few short pages of other places and other years, for lessons on sources that have aged.

What an old page says was right when it was written. The addresses are of domains that are reserved
for examples (RFC 2606), so no link leads to anybody's site.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from .corpus import Passage
from .prose import parse_blocks
from .tables import take_tables

__all__ = ["lesson_passages"]


def lesson_passages() -> Iterator[Passage]:
    """Yield the pages.

    Examples
    --------
    >>> min(passage.published for passage in lesson_passages()).year
    2009
    """
    for title, url, site, published, keywords, text in _PAGES:
        rest, tables = take_tables(text)
        yield Passage(title, url, tuple(parse_blocks(rest)), site, published, keywords, tables)


_PAGES = (
    (
        "Order of a dictionary",
        "https://old-notes.example.org/python/dictionary-order",
        "Old notes",
        date(2009, 3, 2),
        "dictionaries ordered keep order keys",
        """
A dictionary keeps no order. Whoever loops over a dictionary gets its keys in an order that seems
arbitrary, and that may differ from one run to the next. If the order of the keys matters, sort
them.
""",
    ),
    (
        "Dictionaries are ordered",
        "https://news.example.net/python/ordered-dictionaries",
        "News of the language",
        date(2018, 7, 11),
        "dictionary ordered keep order keys",
        """
Since Python 3.7 a dictionary keeps the order in which its keys were inserted, and the language
guarantees it. In Python 3.6 that order was only a detail of the implementation.
""",
    ),
    (
        "End of support for Python 2",
        "https://old-notes.example.org/python/end-of-python-2",
        "Old notes",
        date(2011, 5, 20),
        "when does support end python 2.7",
        """
Support for Python 2 ends in 2015. Python 2.7 is its last version, and gets corrections until then.
""",
    ),
    (
        "Python 2 has come to its end",
        "https://news.example.net/python/last-python-2",
        "News of the language",
        date(2020, 4, 21),
        "when does support end python 2.7",
        """
Support for Python 2 ended on 1 January 2020; the date of 2015 had been put off in 2014. Python
2.7.18, of April 2020, is its last release.
""",
    ),
    (
        "Releases of Python",
        "https://releases.example.com/python",
        "Release tables",
        date(2025, 10, 8),
        "release released version versions table dates end of life",
        """
Each version of Python gets corrections for about five years after its release.

| Version | Released | End of life | New syntax |
| --- | --- | --- | --- |
| 3.8 | 2019-10-14 | 2024-10-07 | assignment expressions |
| 3.9 | 2020-10-05 | 2025-10-31 | union of dictionaries |
| 3.10 | 2021-10-04 | 2026-10-31 | match statement |
| 3.11 | 2022-10-24 | 2027-10-31 | except star |
| 3.12 | 2023-10-02 | 2028-10-31 | type statement |
| 3.13 | 2024-10-07 | 2029-10-31 | none |
| 3.14 | 2025-10-07 | 2030-10-31 | template strings |
""",
    ),
)
