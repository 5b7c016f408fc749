"""Logs for machines: one JSON object a line, with whatever a caller put into `extra`."""

import json
import logging
from datetime import UTC, datetime

FORMATS = ("line", "json")
FLOORS = ("arena_site", "scoring", "agents", "cohorts", "markets")
_OF_EVERY_RECORD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """A record as one line of JSON: time, level, logger, message, its own fields, and the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: value for name, value in vars(record).items() if name not in _OF_EVERY_RECORD},
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def configuration(form: str) -> dict[str, object]:
    """Django's LOGGING for a format: `line` says what went wrong, `json` each step of our own code as well."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"},
            "json": {"()": JsonLines},
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": form}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            # Retries are no news; what they could not mend is reported by whoever asked.
            "stamina": {"level": "ERROR"},
            **({floor: {"level": "INFO"} for floor in FLOORS} if form == "json" else {}),
        },
    }


def form(text: str) -> str:
    """A format's name. Raises ValueError for anything else."""
    if text.lower() not in FORMATS:
        raise ValueError(f"must be one of {', '.join(FORMATS)}")
    return text.lower()
