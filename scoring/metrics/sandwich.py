"""Standard errors that hold whatever goes on within an event, and whether or not the model is right."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from scoring.metrics.panel import Codes, Floats

DENSE = 40_000_000
"""Tables of up to so many numbers (320 MB) are kept whole; larger ones as their non-zero entries."""


def table(rows: Codes, columns: Codes, values: NDArray, shape: tuple[int, int]) -> NDArray | sparse.csr_array:
    """A table of sums: values at the same row and column add up. Whole if small or well filled, else sparse."""
    cells = shape[0] * shape[1]
    if cells <= DENSE and cells <= 20 * max(len(values), 50_000):
        return np.asarray(np.bincount(rows * shape[1] + columns, values, cells), dtype=np.float64).reshape(shape)
    return sparse.csr_array((values, (rows, columns)), shape)


def gram(matrix: NDArray | sparse.csr_array, weight: NDArray | None = None) -> Floats:
    """X' diag(weight) X as a whole table."""
    if isinstance(matrix, np.ndarray):
        return np.asarray((matrix if weight is None else matrix * weight[:, None]).T @ matrix)
    scaled = matrix if weight is None else sparse.diags_array(weight) @ matrix
    return np.asarray((scaled.T @ matrix).toarray())


def event_scores(
    scores: Floats, information: Floats, event: Codes, forecaster: Codes, forecasters: int
) -> tuple[NDArray | sparse.csr_array, NDArray[np.bool_]]:
    """What each event pulls at each forecaster's parameter as if it had not taken part in the fit: (E, N).

    U_ef = sqrt((G_f - 1) / G_f) * sum(scores) / (1 - h_ef), where h_ef is the share of the forecaster's information
    that lies in event e and G_f the number of their events. The covariance of parameters with Hessian H is then
    H^-1 U'U H^-1: the leave-one-event-out jackknife with the off-diagonal of each event's own information neglected;
    exact for a mean. Without this stretching a forecaster of few events would look too sure.

    Parameters
    ----------
    scores, information : arrays of shape (F,), each forecast's share in the gradient and in the diagonal of H
    event, forecaster : codes of shape (F,)

    Also returns, (N,), whose error can be told: forecasters of two events at least. The others' columns are 0.

    References
    ----------
    Liang, K.-Y. and Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models. Biometrika 73,
    13-22. Bell, R. M. and McCaffrey, D. F. (2002). Bias reduction in standard errors for linear regression with
    multi-stage samples. Survey Methodology 28, 169-181.

    Examples
    --------
    >>> pulls, known = event_scores(np.array([-1.0, 1.0]), np.ones(2), np.array([0, 1]), np.array([0, 0]), 1)
    >>> float(np.sqrt((pulls**2).sum()) / 2)  # the standard error of the mean of 1 and 3; H is 2
    1.0
    """
    place, inverse = np.unique(event * forecasters + forecaster, return_inverse=True)
    who, where = place % max(forecasters, 1), place // max(forecasters, 1)
    pull, own = np.bincount(inverse, scores, len(place)), np.bincount(inverse, information, len(place))
    total = np.bincount(who, own, forecasters)
    informative = np.bincount(who[own > 0], minlength=forecasters)
    known = informative >= 2
    share = np.divide(own, total[who], out=np.zeros(len(place)), where=total[who] > 0)
    stretch = np.where(known, np.sqrt(np.maximum(informative - 1, 0) / np.maximum(informative, 1)), 0.0)
    pull = np.where(known[who], stretch[who] * pull / np.maximum(1 - share, 1e-12), 0.0)
    _, row = np.unique(where, return_inverse=True)
    events = int(row.max()) + 1 if len(row) else 0
    return table(row, who, pull, (events, forecasters)), known
