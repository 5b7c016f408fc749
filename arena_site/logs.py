"""Log formats: plain lines, or one JSON object per line that includes the fields of `extra`."""

import json
import logging
from datetime import UTC, datetime

FORMATS = ("line", "json")
APPS = ("arena_site", "scoring", "agents", "cohorts", "markets", "foundation")
LONGEST_MESSAGE = 2_000
_STANDARD_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """One JSON object per record: time, level, logger, message, extra fields, and the traceback if any."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: value for name, value in vars(record).items() if name not in _STANDARD_ATTRIBUTES},
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=lambda value: str(value)[:LONGEST_MESSAGE])


def shorten(record: logging.LogRecord) -> bool:
    """Lets every record pass: a long message cut, since it may hold a visitor's path, a refusal without traceback."""
    message = record.getMessage()
    if len(message) > LONGEST_MESSAGE:
        record.msg, record.args = f"{message[:LONGEST_MESSAGE]}… ({len(message):,} characters)", ()
    is_refused_page = record.name == "django.request" and record.levelno < logging.ERROR
    if is_refused_page or record.name.startswith("django.security."):
        record.exc_info = None
    return True


def configuration(form: str) -> dict[str, object]:
    """Django's LOGGING for a format: `line` prints warnings, `json` also the steps of our own apps.

    Either way the steps go to the run under way.
    """
    level = "INFO" if form == "json" else "WARNING"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"},
            "json": {"()": JsonFormatter},
        },
        "filters": {"short": {"()": lambda: shorten}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": form,
                "level": level,
                "filters": ["short"],
            },
            "run": {"class": "foundation.run_log.RunLogHandler"},
        },
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            # Retries are routine; callers report what still failed.
            "stamina": {"level": "ERROR"},
            **{app: {"level": "INFO", "handlers": ["run"]} for app in APPS},
        },
    }
