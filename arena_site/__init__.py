"""The Django project: settings, URLs, jobs, pages and the operator dashboard."""

import os

# Before NumPy is loaded: panels are small, and threads that wait for each other take longer than they save. With one
# thread sums are also added up in the same order on every machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
