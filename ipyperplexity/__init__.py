"""Ask Perplexity in a notebook cell, watch the answer stream, hold its sources as data.

The public names are imported when they are first used, so that ``import ipyperplexity`` and
``%load_ext ipyperplexity`` cost next to nothing.

Examples
--------
>>> import ipyperplexity as pplx
>>> answer = pplx.demo().ask("What does the with statement do?")
>>> sources = answer.to_dicts()
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ipyperplexity.version import __version__

if TYPE_CHECKING:
    from ipyperplexity import errors, events
    from ipyperplexity.answer import Answer
    from ipyperplexity.answer_parts import Image, Usage
    from ipyperplexity.answer_stream import AnswerStream
    from ipyperplexity.backends import Status
    from ipyperplexity.batch.answer_table import AnswerTable, answers
    from ipyperplexity.batch.compare import Comparison, compare
    from ipyperplexity.batch.cost_estimate import CostEstimate
    from ipyperplexity.batch.enriched_table import EnrichedTable
    from ipyperplexity.citations import Citation
    from ipyperplexity.claims import Claim, Claims
    from ipyperplexity.client import Client
    from ipyperplexity.default_client import ask, ask_many, demo, estimate, search, status, stream
    from ipyperplexity.errors import PerplexityError
    from ipyperplexity.jobs import Job, Jobs
    from ipyperplexity.models_table import Models
    from ipyperplexity.notebook.panel import Panel
    from ipyperplexity.question import Question
    from ipyperplexity.schema import Schema
    from ipyperplexity.search_query import SearchQuery
    from ipyperplexity.search_results import SearchResults
    from ipyperplexity.sources import Source, Sources
    from ipyperplexity.taping import record, replay
    from ipyperplexity.tools import Tool
    from ipyperplexity.usage_table import UsageTable

_HOMES = {
    "Answer": "answer",
    "AnswerStream": "answer_stream",
    "AnswerTable": "batch.answer_table",
    "Citation": "citations",
    "Claim": "claims",
    "Claims": "claims",
    "Client": "client",
    "Comparison": "batch.compare",
    "CostEstimate": "batch.cost_estimate",
    "EnrichedTable": "batch.enriched_table",
    "Image": "answer_parts",
    "Job": "jobs.job",
    "Jobs": "jobs.table",
    "Models": "models_table",
    "Panel": "notebook.panel",
    "PerplexityError": "errors",
    "Question": "question",
    "Schema": "schema",
    "SearchQuery": "search_query",
    "SearchResults": "search_results",
    "Source": "sources",
    "Sources": "sources",
    "Status": "backends",
    "Tool": "tools",
    "Usage": "answer_parts",
    "UsageTable": "usage_table",
    "answers": "batch.answer_table",
    "ask": "default_client",
    "ask_many": "default_client",
    "compare": "batch.compare",
    "demo": "default_client",
    "errors": "errors",
    "estimate": "default_client",
    "events": "events",
    "record": "taping",
    "replay": "taping",
    "search": "default_client",
    "status": "default_client",
    "stream": "default_client",
}

__all__ = [
    "Answer",
    "AnswerStream",
    "AnswerTable",
    "Citation",
    "Claim",
    "Claims",
    "Client",
    "Comparison",
    "CostEstimate",
    "EnrichedTable",
    "Image",
    "Job",
    "Jobs",
    "Models",
    "Panel",
    "PerplexityError",
    "Question",
    "Schema",
    "SearchQuery",
    "SearchResults",
    "Source",
    "Sources",
    "Status",
    "Tool",
    "Usage",
    "UsageTable",
    "__version__",
    "answers",
    "ask",
    "ask_many",
    "compare",
    "demo",
    "errors",
    "estimate",
    "events",
    "load_ipython_extension",
    "record",
    "replay",
    "search",
    "status",
    "stream",
    "unload_ipython_extension",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'ipyperplexity' has no attribute {name!r}")
    module = importlib.import_module(f"ipyperplexity.{home}")
    hooks: Any = importlib.import_module("ipyperplexity.hooks")
    hooks.draw_into = lambda stream, output: importlib.import_module(
        "ipyperplexity.notebook.output_target"
    ).draw_into(stream, output)
    value = module if home == name else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()})


def load_ipython_extension(ipython: Any) -> None:
    """Register the magics: what ``%load_ext ipyperplexity`` calls."""
    from ipyperplexity.notebook.magic import load

    load(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """Take the magics away again: what ``%unload_ext ipyperplexity`` calls."""
    from ipyperplexity.notebook.magic import unload

    unload(ipython)
