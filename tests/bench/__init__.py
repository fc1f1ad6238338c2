"""Benchmarks: ours beside the libraries that a reader would otherwise use, in one run.

``python -m tests.bench`` prints one table. These are measurements, not tests: a missed target is
printed, never an error. Libraries that are not installed are named as such; for all of them::

    pip install httpx httpx-sse sseclient-py perplexityai openai requests
"""
