"""What an executor says when a question does not come back, and what that means for the run.

What goes wrong while a question is asked comes back as an Attempt, from whatever process. So what a
future raises is the executor's own: one worker is gone and there are others, or nothing can be run
there at all.
"""

from __future__ import annotations

import concurrent.futures

from ipyperplexity.errors import NetworkError, PerplexityError
from ipyperplexity.secret_patterns import hide_secrets

#: Characters that are shown of what an executor says: some quote all that they were given.
_MOST = 300
#: Where exceptions come from that tell of what was sent, or of what is installed there.
_OF_THE_CODE = ("builtins", "pickle", "_pickle")
_IMPORTABLE = (
    "What goes to a worker must be importable there: this package, and a class that is the schema"
)


def is_lost_worker(defect: BaseException) -> bool:
    """Whether a worker went and took its question along, and another one can be given it.

    Examples
    --------
    >>> is_lost_worker(ConnectionResetError()), is_lost_worker(ModuleNotFoundError("No module"))
    (True, False)
    >>> is_lost_worker(concurrent.futures.BrokenExecutor("all of them are gone"))
    False
    """
    if isinstance(defect, concurrent.futures.BrokenExecutor):
        return False
    if isinstance(defect, OSError | EOFError | MemoryError) or not isinstance(defect, Exception):
        return True
    # Each library has its own: dask a KilledWorker, MPI and Ray others.
    return type(defect).__module__ not in _OF_THE_CODE


def lost_worker(defect: BaseException) -> NetworkError:
    """Return the error of a row whose worker went.

    Examples
    --------
    >>> lost_worker(EOFError()).message
    'The worker that asked this is gone (EOFError).'
    """
    return NetworkError(
        f"The worker that asked this is gone ({_told(defect)}).",
        hint="The question may have been answered, and billed. table.retry() asks it again.",
    )


def as_ours(defect: BaseException) -> PerplexityError:
    """Return the error of a row with which the run had to stop.

    Examples
    --------
    >>> as_ours(RuntimeError("shut down")).message
    'RuntimeError: shut down'
    """
    return defect if isinstance(defect, PerplexityError) else PerplexityError(why_stopped(defect))


def why_stopped(defect: BaseException) -> str:
    """Return in words why nothing more can be run by an executor.

    Examples
    --------
    >>> why_stopped(RuntimeError("cannot schedule new futures after shutdown"))
    'RuntimeError: cannot schedule new futures after shutdown'
    """
    told = _told(defect)
    if isinstance(defect, concurrent.futures.BrokenExecutor):
        return f"{told}. A worker died, and all of its executor with it: give a new one"
    if isinstance(defect, ImportError | AttributeError | TypeError) or "pickle" in told.lower():
        return f"{told}. {_IMPORTABLE}"
    return told


def _told(defect: BaseException) -> str:
    """Return an exception in a line."""
    text = hide_secrets(" ".join(str(defect).split()))
    text = text if len(text) <= _MOST else text[: _MOST - 1] + "…"
    # What a worker tells of our own code names the class already.
    name = "" if type(defect) is PerplexityError else f"{type(defect).__name__}: "
    return f"{name}{text}".rstrip(" .:")
