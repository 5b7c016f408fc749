"""Records of operation: runs, alerts and their deliveries."""

from foundation.models.alert import Alert, AlertItem, Notice
from foundation.models.layout import DatabaseLayout
from foundation.models.run import Run
