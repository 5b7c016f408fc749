"""Records of operation: runs, alerts and their deliveries."""

from foundation.models.alert import Alert, AlertItem
from foundation.models.notice import Notice
from foundation.models.run import Run
