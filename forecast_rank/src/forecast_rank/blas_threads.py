"""Matrix products on one thread."""

from contextlib import AbstractContextManager

from threadpoolctl import threadpool_limits


def one_blas_thread() -> AbstractContextManager[object]:
    """A context in which matrix products run on one thread.

    The products of the metrics are small: several threads wait for each other longer than they compute. On two busy
    cores a report of a million rows took 35 s of processor time with two threads and 9 s with one.
    """
    return threadpool_limits(limits=1, user_api="blas")
