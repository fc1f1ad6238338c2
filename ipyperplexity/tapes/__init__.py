"""Record what comes over the wire once; replay it anywhere, at its own pace, without a key.

``deck.py`` is what a process records to or replays from; ``asked.py`` says when two requests ask
the same; ``masking.py`` keeps secrets off the tape.
"""
