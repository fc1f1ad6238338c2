"""``df.perplexity.ask("Who runs {company}?")`` on frames and series of pandas and polars.

Importing this module registers it for those of the two that are loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ipyperplexity.tabular.accessors import register_accessor

if TYPE_CHECKING:
    from ipyperplexity.batch.cost_estimate import CostEstimate
    from ipyperplexity.batch.enriched_table import EnrichedTable

NAME = "perplexity"


class PerplexityAccessor:
    """Asks about the rows of a frame or series.

    Parameters
    ----------
    data : frame or series

    Examples
    --------
    ::

        import ipyperplexity.batch.accessor

        table = df.perplexity.ask("Who runs {company}?", schema={"name": str, "since": int})
        df.join(table.to_pandas())
    """

    def __init__(self, data: Any) -> None:
        self._data = data

    def ask(self, prompt: Any = None, *, client: Any = None, **options: Any) -> EnrichedTable:
        """Ask a question of each row; see :meth:`ipyperplexity.Client.ask_many`.

        Parameters
        ----------
        prompt : str or callable
        client : Client, optional
            Who asks; the default client unless given.
        **options
            As of ``ask_many``.
        """
        import ipyperplexity

        table: EnrichedTable = (client or ipyperplexity).ask_many(self._data, prompt, **options)
        return table

    def estimate(self, prompt: Any = None, *, client: Any = None, **options: Any) -> CostEstimate:
        """Tell what :meth:`ask` would cost; see :meth:`ipyperplexity.Client.estimate`."""
        import ipyperplexity

        found: CostEstimate = (client or ipyperplexity).estimate(self._data, prompt, **options)
        return found


register_accessor(NAME, PerplexityAccessor)
