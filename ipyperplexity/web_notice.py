"""What the first answer of the unofficial web backend says, once a process."""

from __future__ import annotations

from collections.abc import Collection

WEB_NOTICE = (
    "The web backend is unofficial: perplexity.ai may change or refuse it any day, and "
    "Perplexity's terms may not allow it for your account."
)


class WebNotice:
    """The notice, to be shown beside one answer.

    Examples
    --------
    >>> notice = WebNotice()
    >>> [len(notice.take()) for _ in range(2)]
    [1, 0]
    >>> notice.give_back([WEB_NOTICE])  # of a question that failed: nothing was shown
    >>> len(notice.take())
    1
    """

    def __init__(self) -> None:
        self._due = [WEB_NOTICE]

    def take(self) -> list[str]:
        """Return the notice to the first who asks, in whatever thread."""
        try:
            return [self._due.pop()]
        except IndexError:
            return []

    def give_back(self, warnings: Collection[str]) -> None:
        """Take the notice back if it is among warnings that were never shown."""
        if WEB_NOTICE in warnings and not self._due:
            self._due.append(WEB_NOTICE)


web_notice = WebNotice()
