"""Python's collector of garbage, told what is none."""

import gc

COLLECTED_EVERY = 10_000
"""So many new objects bring it to look at them; Python's own 700 is for small programs."""


def keep_what_is_loaded() -> None:
    """Has it look no more at what will be there to the end: modules, models and settings.

    It would go through all of them again and again, for a tenth of a long job's time, and a visitor who comes just then
    waits a fifth of a second for it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTED_EVERY)
