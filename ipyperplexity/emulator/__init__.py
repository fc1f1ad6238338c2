"""The embedded answer engine: the Agent API on loopback, answered from texts on this machine.

It imports nothing from the rest of the package: an independent reading of the protocol, so that
a misunderstanding in one of the two shows. Standard library only.
"""

from .corpus import Corpus
from .faults import FAULTS, Behavior
from .server import EmulatorServer, RecordedRequest

__all__ = ["FAULTS", "Behavior", "Corpus", "EmulatorServer", "RecordedRequest"]
