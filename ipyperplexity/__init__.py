"""Ask Perplexity in a notebook cell, watch the answer stream, hold its sources as data."""

from ipyperplexity.version import __version__

__all__ = ["__version__"]
