"""A key that was typed where a question stands is not sent: a slip in ``login`` is none to pay for.

It would be a question to the service, which keeps it, and the key would be in its log.
"""

from __future__ import annotations

import os

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.secret_patterns import hide_secrets

#: From this length on a word that looks like a key is one: names such as pplx-70b-online are short.
_SURELY = 40
#: Up to so many words a line is more likely a command with a slip in it than a question.
_FEW_WORDS = 3


def refuse_key(text: str, *, literal: bool = False) -> None:
    """Refuse a question that holds a key.

    Parameters
    ----------
    text : str
        As it would be sent.
    literal : bool
        Whether the user has said that it is a question, whatever it looks like.

    Raises
    ------
    InvalidRequestError
        The key is not in it.

    Examples
    --------
    >>> refuse_key("What was the model pplx-70b-online good for?")
    """
    from ipyperplexity.auth.keys import KEY_VARIABLES

    words = text.split()
    suspects = [word for word in words if hide_secrets(word) != word]
    in_use = [key for name in KEY_VARIABLES if len(key := os.environ.get(name, "").strip()) >= 8]
    sure = any(len(word) >= _SURELY for word in suspects) or any(key in text for key in in_use)
    if sure or (suspects and len(words) <= _FEW_WORDS and not literal):
        anyway = "" if sure else " If it is none, put -- before the question."
        raise InvalidRequestError(
            "question: it holds what looks like an API key, and was not sent.",
            field="question",
            hint="If it is one, clear this cell and its output; %perplexity login asks for a key "
            f"unseen, and stores it.{anyway}",
        )
