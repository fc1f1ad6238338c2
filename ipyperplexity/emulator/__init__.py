"""The embedded answer engine: Perplexity's wires on loopback, answered from texts on this machine.

It imports nothing from the rest of the package: an independent reading of the protocol, so that
a misunderstanding in one of the two shows. Standard library only.
"""

from .behavior import Behavior
from .corpus import Corpus
from .faults import FAULTS, WEB_FAULTS
from .server import EmulatorServer, RecordedRequest

__all__ = ["FAULTS", "WEB_FAULTS", "Behavior", "Corpus", "EmulatorServer", "RecordedRequest"]
