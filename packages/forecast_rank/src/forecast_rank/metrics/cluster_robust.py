"""Standard errors clustered by event ("sandwich" estimators): valid for any dependence within an event."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forecast_rank.metrics.blocks import row_slices
from forecast_rank.metrics.flat_arrays import Codes, Floats, distinct_codes

DENSE = 40_000_000
"""The size in numbers (320 MB) up to which a table is dense; a larger one is sparse."""


def sum_table(rows: Codes, columns: Codes, values: NDArray, shape: tuple[int, int]) -> NDArray | sparse.csr_array:
    """A table of sums: values at the same row and column add up. Dense if small or well filled, else sparse."""
    cells = shape[0] * shape[1]
    if cells <= DENSE and cells <= 20 * max(len(values), 50_000):
        return np.asarray(np.bincount(rows * shape[1] + columns, values, cells), dtype=np.float64).reshape(shape)
    return sparse.csr_array((values, (rows, columns)), shape)


def weighted_gram(matrix: NDArray | sparse.csr_array, weight: NDArray | None = None) -> Floats:
    """X' diag(weight) X as a dense table."""
    if isinstance(matrix, np.ndarray):
        if weight is None:
            return np.asarray(matrix.T @ matrix)
        gram = np.zeros((matrix.shape[1], matrix.shape[1]))
        for rows in row_slices(0, *matrix.shape):
            gram += (matrix[rows] * weight[rows, None]).T @ matrix[rows]
        return gram
    scaled = matrix if weight is None else sparse.diags_array(weight) @ matrix
    return np.asarray((scaled.T @ matrix).toarray())


def event_scores(
    scores: Floats, information: Floats, event: Codes, forecaster: Codes, forecasters: int
) -> tuple[NDArray | sparse.csr_array, NDArray[np.bool_]]:
    """Score contribution of each event to each forecaster's parameter, as if the event had not taken part in the fit.

    U_ef = sqrt((G_f - 1) / G_f) * sum(scores) / (1 - h_ef), where h_ef is the share of the forecaster's information in
    event e and G_f the number of their events. The covariance of parameters with Hessian H is then H^-1 U'U H^-1: the
    leave-one-event-out jackknife without the off-diagonal terms of each event's own information; exact for a mean.
    Without the factor 1 / (1 - h_ef) the errors of a forecaster with few events would be too small.

    Parameters
    ----------
    scores, information : arrays, shape (F,)
        Each forecast's contribution to the gradient and to the diagonal of H.
    event, forecaster : arrays of int, shape (F,)
        Codes.
    forecasters : int
        N.

    Returns
    -------
    contributions : array or sparse array, shape (number of events, N)
        0 for a forecaster with fewer than two events.
    known : array of bool, shape (N,)
        Whether the forecaster has at least two events, so that an error can be computed.

    References
    ----------
    Liang, K.-Y. and Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models. Biometrika 73,
    13-22. Bell, R. M. and McCaffrey, D. F. (2002). Bias reduction in standard errors for linear regression with
    multi-stage samples. Survey Methodology 28, 169-181.

    Examples
    --------
    >>> contributions, known = event_scores(np.array([-1.0, 1.0]), np.ones(2), np.array([0, 1]), np.array([0, 0]), 1)
    >>> float(np.sqrt((contributions**2).sum()) / 2)  # the standard error of the mean of 1 and 3; H is 2
    1.0
    """
    codes, row = distinct_codes(event)
    contributions, own_information = (
        sum_table(row, forecaster, values, (len(codes), forecasters)) for values in (scores, information)
    )
    total, informative = own_information.sum(axis=0), np.asarray((own_information > 0).sum(axis=0))
    is_known = informative >= 2
    correction = np.where(is_known, np.sqrt(np.maximum(informative - 1, 0) / np.maximum(informative, 1)), 0.0)
    total = np.where(total > 0, total, 1.0)
    if isinstance(own_information, np.ndarray):
        cells, share = contributions, own_information
    else:  # the two have the same cells, of which only these are stored
        cells, share, total, correction = (
            contributions.data,
            own_information.data,
            total[own_information.indices],
            correction[own_information.indices],
        )
    share /= total
    cells *= correction
    cells /= np.maximum(1 - share, 1e-12)
    return contributions, is_known
