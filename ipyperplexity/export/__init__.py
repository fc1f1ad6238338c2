"""Sources and answers as documents: Markdown, BibTeX, CSL-JSON, and cells safe in a spreadsheet.

What a page calls itself is hostile text. Whatever stands in a title, domain or URL, it stays text:
it opens no HTML in Markdown, leaves no BibTeX field, and starts no formula. Only http(s) URLs
become links. Nothing here reads a clock: the date of access is given.
"""

from __future__ import annotations

from ipyperplexity.export.bibliography import to_bibtex, to_csl_json
from ipyperplexity.export.document import to_markdown
from ipyperplexity.markup.links import SourceLike
from ipyperplexity.tabular.files import safe_cell

__all__ = ["SourceLike", "safe_cell", "to_bibtex", "to_csl_json", "to_markdown"]
