"""`python -m forecast_rank` is the command `forecast-rank`."""

import sys

from forecast_rank.cli import main

sys.exit(main())
