"""Long research: questions that are left to the service and fetched later, also after a restart.

From the bottom: when to look again (`pace`), what to tell meanwhile (`progress`), the frames of a
run whatever happens to the connection (`feed`), the answer made of them (`job_stream`), and on top
`Job` and the table `Jobs`.
"""

from __future__ import annotations

from ipyperplexity.jobs.job import Job
from ipyperplexity.jobs.job_stream import JobStream
from ipyperplexity.jobs.pace import Pace
from ipyperplexity.jobs.progress import Progress, progress_line
from ipyperplexity.jobs.table import Jobs

__all__ = ["Job", "JobStream", "Jobs", "Pace", "Progress", "progress_line"]
