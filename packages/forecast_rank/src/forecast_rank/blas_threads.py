"""Matrix products on one thread."""

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[object]:
    """A context in which matrix products run on one thread.

    The products of the metrics are small: several threads wait for each other longer than they compute. On two busy
    cores a report of a million rows took 35 s of processor time with two threads and 9 s with one.
    """
    return _libraries().limit(limits=1, user_api="blas")


@cache
def _libraries() -> ThreadpoolController:
    """The libraries that compute matrix products, looked for once: in an arena that takes as long as a small metric."""
    import scipy.linalg  # noqa: F401 - loads SciPy's, which is another one than NumPy's

    return ThreadpoolController()
