"""What a docstring tells a model: the first paragraph, and a sentence for each parameter.

Numpy, Google and Sphinx styles are read where they are simple; whatever is not understood is
passed over, as a missing description is no error.
"""

from __future__ import annotations

import re

#: Characters; models are told what a function is for, not how it works.
MAX_DESCRIPTION = 1000

_NUMPY_SECTION = re.compile(
    r"^(?:Other )?Parameters\n-{3,}[ ]*\n(.*?)(?=^\S[^\n]*\n-{3,}|\Z)", re.M | re.S
)
_GOOGLE_SECTION = re.compile(r"^(?:Args|Arguments|Parameters):[ ]*\n((?:[ \t]+[^\n]*\n|\n)+)", re.M)
_SPHINX_FIELD = re.compile(r"^:param\s+(?:[^:\n]*\s)?\*{0,2}(\w+):[ ]*(.*(?:\n[ \t]+\S.*)*)", re.M)
_NUMPY_NAMES = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_GOOGLE_NAME = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)\n]*\))?:\s*(.*)$")


def summary(doc: str) -> str:
    r"""Return the first paragraph of a docstring on one line.

    Examples
    --------
    >>> summary("Look up\na city.\n\nMore.")
    'Look up a city.'
    """
    return _one_line(doc.strip().split("\n\n")[0])


def parameter_notes(doc: str) -> dict[str, str]:
    r"""Return the description of each parameter that a docstring has one for.

    Parameters
    ----------
    doc : str
        The docstring, without its common indentation.

    Examples
    --------
    >>> parameter_notes("Look up.\n\nParameters\n----------\ncity : str\n    Its name.")
    {'city': 'Its name.'}
    >>> parameter_notes("Look up.\n\nArgs:\n    city (str): Its name.")
    {'city': 'Its name.'}
    """
    notes: dict[str, str] = {}
    text = doc.rstrip() + "\n"
    for name, note in _SPHINX_FIELD.findall(text):
        notes[name] = _one_line(note)
    if section := _GOOGLE_SECTION.search(text):
        notes |= _google(section[1])
    if section := _NUMPY_SECTION.search(text):
        notes |= _numpy(section[1])
    return {name: note for name, note in notes.items() if note}


def _numpy(section: str) -> dict[str, str]:
    notes: dict[str, str] = {}
    for head, body in _entries(section, 0):
        if named := _NUMPY_NAMES.match(head):
            for name in named[1].split(","):
                notes[name.strip(" *")] = _one_line(body)
    return notes


def _google(section: str) -> dict[str, str]:
    lines = [line for line in section.expandtabs().splitlines() if line.strip()]
    indent = min(len(line) - len(line.lstrip()) for line in lines) if lines else 0
    notes: dict[str, str] = {}
    for head, body in _entries(section.expandtabs(), indent):
        if named := _GOOGLE_NAME.match(head):
            notes[named[1]] = _one_line(f"{named[2]} {body}")
    return notes


def _entries(section: str, indent: int) -> list[tuple[str, str]]:
    """Return each line at an indentation, with the deeper lines below it, up to a blank one."""
    entries: list[tuple[str, str]] = []
    is_open = False
    for line in section.splitlines():
        depth = len(line) - len(line.lstrip())
        if not line.strip():
            is_open = False
        elif depth <= indent:
            entries.append((line.strip(), ""))
            is_open = True
        elif entries and is_open:
            head, body = entries[-1]
            entries[-1] = (head, f"{body} {line.strip()}")
    return entries


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_DESCRIPTION else line[: MAX_DESCRIPTION - 1] + "…"
