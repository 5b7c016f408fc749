"""Growth of a bettor's capital who stakes by Kelly's criterion: as the forecaster expected it, and as it was."""

from forecast_rank.metrics.blocks import by_blocks
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.returns import log_wealth
from forecast_rank.metrics.staking import expected_log_wealth, optimal_log_wealth, staking_accounts


def realised_growth(panel: Panel) -> Floats:
    """The logarithm of what a dollar became: `log_wealth` at risk aversion 1.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    array, shape (F,)
        NaN without prices and where the question is not settled; minus infinity after ruin.

    References
    ----------
    Kelly, J. L. (1956). A new interpretation of information rate. Bell System Technical Journal 35, 917-926.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.6, 0.4]]], [[1, 0]], odds=[[0.5, 0.55]])
    >>> realised_growth(panel).round(6).tolist()  # 0.2 staked at even odds: ln 1.2
    [0.182322]
    """
    return log_wealth(panel, 1.0)


@by_blocks
def expected_growth(panel: Panel) -> Floats:
    """The growth that the forecaster expected of the same stakes, sum_k p_k ln W_k.

    0 where the forecast found nothing worth its price. A mean far above that of `realised_growth` shows confidence that
    the outcomes did not justify; the two agree in the mean for a calibrated forecaster.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    array, shape (F,)
        At least 0. Where options are not exclusive: the mean over their accounts. NaN as in `realised_growth`.

    References
    ----------
    Kelly, J. L. (1956). A new interpretation of information rate. Bell System Technical Journal 35, 917-926.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.6, 0.4]]], [[1, 0]], odds=[[0.5, 0.55]])
    >>> expected_growth(panel).round(6).tolist()  # 0.6 ln 1.2 + 0.4 ln 0.8
    [0.020136]
    """
    accounts = staking_accounts(panel)
    return expected_log_wealth(panel, accounts, optimal_log_wealth(accounts, 1.0))
