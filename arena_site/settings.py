"""Settings, from the environment or a `.env` beside `manage.py`. Every name is listed in `.env.example`."""

from pathlib import Path

import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from django.core.management.utils import get_random_secret_key

from arena_site import conf, logs

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()
conf.read_file(env, BASE_DIR / ".env")

DEBUG = conf.read(env, "DEBUG", "false", conf.flag)
_secret_key = env.str("SECRET_KEY", default="")
# Commands may run without a key; a server may not (see `arena_site.checks`).
SECRET_KEY_IS_SET = bool(_secret_key)
SECRET_KEY = _secret_key or get_random_secret_key()
# Earlier keys, by which sessions and links stay valid while a new one takes over.
SECRET_KEY_FALLBACKS = conf.read(env, "SECRET_KEY_FALLBACKS", "", conf.split_list)
# Signs receipts and the heads of the hash chains; without one a key follows from SECRET_KEY.
ARENA_SIGNING_KEY = conf.read(env, "ARENA_SIGNING_KEY", "", conf.optional(conf.signing_key))
# Its successor, which `rotate_signing_key` puts in use.
ARENA_NEXT_SIGNING_KEY = conf.read(env, "ARENA_NEXT_SIGNING_KEY", "", conf.optional(conf.signing_key))
ALLOWED_HOSTS = conf.read(env, "ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]", conf.list_of(conf.host))
CSRF_TRUSTED_ORIGINS = conf.read(env, "CSRF_TRUSTED_ORIGINS", "", conf.list_of(conf.origin))

# --- the arena -------------------------------------------------------------------------------------------

OPENROUTER_API_KEY = env.str("OPENROUTER_API_KEY", default="")
OPENROUTER_BASE_URL = conf.read(env, "OPENROUTER_BASE_URL", "https://openrouter.ai/api/v1", conf.base_url)
GAMMA_BASE_URL = conf.read(env, "GAMMA_BASE_URL", "https://gamma-api.polymarket.com", conf.base_url)
CLOB_BASE_URL = conf.read(env, "CLOB_BASE_URL", "https://clob.polymarket.com", conf.base_url)
KALSHI_BASE_URL = conf.read(env, "KALSHI_BASE_URL", "https://external-api.kalshi.com/trade-api/v2", conf.base_url)
ARENA_SOURCES = conf.read(env, "ARENA_SOURCES", "polymarket", conf.sources)
# Where evidence for questions comes from: a service with its key, or file:DIR; empty for none.
ARENA_EVIDENCE = conf.read(env, "ARENA_EVIDENCE", "", conf.optional(conf.evidence_source))
ARENA_EVIDENCE_KEY = env.str("ARENA_EVIDENCE_KEY", default="")
ARENA_EVIDENCE_BASE_URL = conf.read(env, "ARENA_EVIDENCE_BASE_URL", "", conf.optional(conf.base_url))
# US dollars for a query to that service; empty for its list price.
ARENA_EVIDENCE_QUERY_USD = conf.read(env, "ARENA_EVIDENCE_QUERY_USD", "", conf.optional(conf.dollars))
if ARENA_EVIDENCE and not ARENA_EVIDENCE.startswith("file:") and not ARENA_EVIDENCE_KEY:
    raise ImproperlyConfigured(f"ARENA_EVIDENCE_KEY: is missing, and {ARENA_EVIDENCE} asks for one")
# Whether models may be asked with the gateway's search tool.
ARENA_SEARCH = conf.read(env, "ARENA_SEARCH", "false", conf.flag)
ARENA_LINEUP = conf.read(env, "ARENA_LINEUP", "approve", conf.one_of("approve", "auto", "unchecked"))
ARENA_SPEND_LIMIT_USD = conf.read(env, "ARENA_SPEND_LIMIT_USD", "25", conf.dollars)
ARENA_VENUE_TIMEOUT_S = conf.read(env, "ARENA_VENUE_TIMEOUT_S", "20", conf.whole_number(1, 120))
ARENA_LLM_TIMEOUT_S = conf.read(env, "ARENA_LLM_TIMEOUT_S", "900", conf.whole_number(1, 3600))
ARENA_LLM_STALL_S = conf.read(env, "ARENA_LLM_STALL_S", "120", conf.whole_number(1, 3600))
ARENA_LLM_TRANSPORT_RETRIES = conf.read(env, "ARENA_LLM_TRANSPORT_RETRIES", "2", conf.whole_number(0, 10))
ARENA_LEASE_S = conf.read(env, "ARENA_LEASE_S", "960", conf.whole_number(2, 7200))
ARENA_DRAIN_S = conf.read(env, "ARENA_DRAIN_S", "120", conf.whole_number(1, 900))
if ARENA_LEASE_S <= ARENA_LLM_TIMEOUT_S:
    raise ImproperlyConfigured(f"ARENA_LEASE_S: must exceed ARENA_LLM_TIMEOUT_S ({ARENA_LLM_TIMEOUT_S})")
# Set by `demo` alone: pages then say that nothing on them is real.
ARENA_DEMO = conf.read(env, "ARENA_DEMO", "false", conf.flag)
# Set by `demo` alone: the instant at which its season stands still for external agents.
ARENA_CLOCK = conf.read(env, "ARENA_CLOCK", "", conf.optional(conf.instant))
# True where instants ahead of the clock may be recorded: in a demo whose services are all on this machine, since a
# season of fixed dates harms nothing there, and in tests. No variable sets it alone.
ARENA_ANY_DATE = ARENA_DEMO and conf.are_local(GAMMA_BASE_URL, CLOB_BASE_URL, KALSHI_BASE_URL, OPENROUTER_BASE_URL)
ARENA_HTTPS = conf.read(env, "ARENA_HTTPS", "false", conf.flag)
ARENA_ALERT_EMAIL = conf.read(env, "ARENA_ALERT_EMAIL", "", conf.list_of(conf.mail_address))
ARENA_ALERT_WEBHOOK = conf.read(env, "ARENA_ALERT_WEBHOOK", "", conf.optional(conf.base_url))
# Where readers reach the site, for the links of alerts.
_own_address = CSRF_TRUSTED_ORIGINS[0] if CSRF_TRUSTED_ORIGINS else "http://localhost:8000"
SITE_URL_IS_SET = bool(env.str("ARENA_SITE_URL", default="") or CSRF_TRUSTED_ORIGINS)
ARENA_SITE_URL = conf.read(env, "ARENA_SITE_URL", _own_address, conf.base_url)
# Names this arena in alerts, where one address takes those of several.
ARENA_INSTANCE = conf.read(env, "ARENA_INSTANCE", "", conf.optional(conf.short_name)) or conf.host_of(ARENA_SITE_URL)
# Names the machines that work on one database together; empty follows from the machine and the database's place.
ARENA_HOST_ID = conf.read(env, "ARENA_HOST_ID", "", conf.optional(conf.short_name)) or ""
# A dead-man service's address, read by the worker's scheduler after its ticks.
ARENA_HEARTBEAT_URL = conf.read(env, "ARENA_HEARTBEAT_URL", "", conf.optional(conf.base_url))
ARENA_TRUSTED_PROXIES = conf.read(env, "ARENA_TRUSTED_PROXIES", "", conf.list_of(conf.network))
# Networks beside this machine that may read /metrics, whatever ALLOWED_HOSTS and ARENA_HTTPS say.
ARENA_MONITOR_NETWORKS = conf.read(env, "ARENA_MONITOR_NETWORKS", "", conf.list_of(conf.network))
# Where archives that were requested lie; shared by all who serve or build them.
ARENA_EXPORT_DIR = Path(env.str("ARENA_EXPORT_DIR", default="") or BASE_DIR / "exports")
# The wheels of the kit, made at build by `build_kit` from this checkout.
ARENA_KIT_DIR = BASE_DIR / ".kit"
# Whether makers register agents themselves: closed, request (an operator approves) or open.
ARENA_REGISTRATION = conf.read(env, "ARENA_REGISTRATION", "closed", conf.one_of("closed", "request", "open"))
# Whether staff must have a second factor; one that an account has is asked for in any case.
ARENA_ADMIN_2FA = conf.read(env, "ARENA_ADMIN_2FA", "optional", conf.one_of("optional", "required"))
# Where to report a vulnerability, for /.well-known/security.txt.
ARENA_SECURITY_CONTACT = conf.read(env, "ARENA_SECURITY_CONTACT", "", conf.optional(conf.contact))
# Requests for each client and minute; 0 is no limit.
ARENA_API_RATE = conf.read(env, "ARENA_API_RATE", "300", conf.whole_number(0, 1_000_000))

# --- Django ----------------------------------------------------------------------------------------------

DATABASES = {"default": conf.read(env, "DATABASE_URL", f"sqlite:///{BASE_DIR / 'db.sqlite3'}", conf.database)}
# A read-only copy of the database, from which pages and reads of the API may come.
_replica = conf.read(env, "DATABASE_REPLICA_URL", "", conf.optional(conf.replica(DATABASES["default"])))
if _replica:
    DATABASES["replica"] = _replica
# Answers that the database could not take lie here until the next run; private to the account that runs the arena.
ARENA_SPOOL_DIR = Path(
    env.str("ARENA_SPOOL_DIR", default="") or conf.beside_database(DATABASES["default"], BASE_DIR, "spool")
)
# Where the nightly backups lie, the newest ARENA_BACKUPS_KEPT of them.
ARENA_BACKUP_DIR = Path(
    env.str("ARENA_BACKUP_DIR", default="") or conf.beside_database(DATABASES["default"], BASE_DIR, "backups")
)
ARENA_BACKUPS_KEPT = conf.read(env, "ARENA_BACKUPS_KEPT", "14", conf.whole_number(1, 10_000))
# The longest that a page is cached, in seconds; 0 caches none.
PAGE_CACHE_S = 60
CACHES = {"default": conf.read(env, "CACHE_URL", "", conf.cache)}
CACHES["limits"] = CACHES["default"] if env.str("CACHE_URL", default="") else conf.local_memory("limits", 100_000)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
FORMAT_MODULE_PATH = ["arena_site.formats"]
USE_I18N = False

INSTALLED_APPS = [
    "arena_site.dashboard.apps.DashboardConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.humanize",
    "django.contrib.sitemaps",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_filters",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_q",
    "django_otp",
    "django_otp.plugins.otp_totp",
    "django_otp.plugins.otp_static",
    "csp",
    "corsheaders",
    "foundation",
    "markets",
    "cohorts",
    "agents",
    "scoring",
    "arena_site",
]
MIDDLEWARE = [
    "corsheaders.middleware.CorsMiddleware",
    "arena_site.middleware.outages.DatabaseOutages",
    "arena_site.middleware.limits.RateLimits",
    "arena_site.middleware.replica_reads.ReplicaReads",
    "arena_site.middleware.read_deadlines.ReadDeadlines",
    "arena_site.middleware.sealed_reads.SealedReads",
    "arena_site.middleware.delivery.ConditionalReads",
    "arena_site.middleware.cached_responses.CachedResponses",
    "arena_site.middleware.heavy_reads.HeavyReads",
    "django.middleware.security.SecurityMiddleware",
    "arena_site.middleware.delivery.Compression",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "arena_site.middleware.delivery.ResponseHeaders",
    "csp.middleware.CSPMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "arena_site.middleware.probes.Probes",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django_otp.middleware.OTPMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
ROOT_URLCONF = "arena_site.urls"
WSGI_APPLICATION = "arena_site.wsgi.application"
TEMPLATES = [
    {
        "NAME": "jinja2",
        "BACKEND": "arena_site.page_templates.PageTemplates",
        "DIRS": [BASE_DIR / "templates" / "pages"],
        "OPTIONS": {
            "environment": "arena_site.pages.environment.environment",
            "context_processors": [
                "arena_site.pages.views.site.demo",
                "arena_site.pages.views.site.maintenance",
                "arena_site.pages.glossary.terms_in_use",
            ],
        },
    },
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    },
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]

STATIC_URL = "static/"
# Served from the apps' own folders, so that no deployment has to collect them.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "object-src": [NONE],
    }
}
# Any site may read the API, but for the submissions: those are for one agent alone.
CORS_URLS_REGEX = r"^/api/(?!v1/submissions/)"
CORS_ALLOW_ALL_ORIGINS = True
CORS_ALLOW_METHODS = ("GET", "HEAD", "OPTIONS")
CORS_ALLOW_HEADERS = ("accept", "if-none-match", "if-modified-since")
CORS_EXPOSE_HEADERS = (
    "Accept-Ranges", "Allow", "Content-Disposition", "Content-Range", "Deprecation", "ETag", "Last-Modified", "Link",
    "RateLimit", "RateLimit-Policy", "Retry-After", "Sunset",
)  # fmt: skip
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SECURE_SSL_REDIRECT = ARENA_HTTPS
SECURE_REDIRECT_EXEMPT = ["^(healthz|readyz|metrics)$"]
SESSION_COOKIE_SECURE = ARENA_HTTPS
# After a login without an address of this site to go on to.
LOGIN_REDIRECT_URL = "admin:index"
OTP_TOTP_ISSUER = "Forecaster Arena"
OTP_ADMIN_HIDE_SENSITIVE_DATA = True
# A night's shift; closing the browser ends the session sooner.
SESSION_COOKIE_AGE = 12 * 3600
SESSION_EXPIRE_AT_BROWSER_CLOSE = True
CSRF_COOKIE_SECURE = ARENA_HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if ARENA_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = conf.read(env, "ARENA_HSTS_SUBDOMAINS", "false", conf.flag)
SECURE_HSTS_PRELOAD = conf.read(env, "ARENA_HSTS_PRELOAD", "false", conf.flag)
# Both are off by default: the operator decides them for the whole domain.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if ARENA_TRUSTED_PROXIES else None

_mail = conf.read(env, "EMAIL_URL", "smtp://localhost:25", conf.mail_server)
EMAIL_BACKEND, EMAIL_HOST, EMAIL_PORT = _mail["EMAIL_BACKEND"], _mail["EMAIL_HOST"], _mail["EMAIL_PORT"]
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail["EMAIL_HOST_USER"] or "", _mail["EMAIL_HOST_PASSWORD"] or ""
EMAIL_USE_TLS, EMAIL_USE_SSL = _mail.get("EMAIL_USE_TLS", False), _mail.get("EMAIL_USE_SSL", False)
if ARENA_DEMO and not env.str("EMAIL_URL", default=""):
    EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
EMAIL_TIMEOUT = 20
DEFAULT_FROM_EMAIL = env.str("ARENA_ALERT_FROM", default="") or "arena@localhost"

REST_FRAMEWORK = {
    "DEFAULT_SCHEMA_CLASS": "foundation.rest.schema.ReadOnlySchema",
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.AllowAny"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["foundation.rest.parsers.BoundedJsonParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "foundation.rest.negotiation.StrictNegotiation",
    "EXCEPTION_HANDLER": "foundation.rest.problems.problem_details",
    "UNAUTHENTICATED_USER": None,
    "COERCE_DECIMAL_TO_STRING": True,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Forecaster Arena",
    "DESCRIPTION": "Every number of the arena: cohorts, agents, decisions with their prompts and calls, "
    "trades, positions, snapshots, Brier scores, markets and the leaderboard. Money, prices and shares are "
    "decimal strings; scores and rates are numbers; times are ISO-8601 in UTC.",
    "VERSION": "1",
    "LICENSE": {"name": "MIT", "identifier": "MIT"},
    "CONTACT": {"name": "The Forecaster Arena authors", "url": "/about/"},
    "SERVERS": [{"url": "/", "description": "This arena"}],
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "GET_LIB_DOC_EXCLUDES": "arena_site.api_schema.views.undescribed_bases",
    "PREPROCESSING_HOOKS": ["arena_site.api_schema.views.apply_descriptions"],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "arena_site.api_schema.views.add_shared_parts",
    ],
    "ENUM_NAME_OVERRIDES": {
        "MarketSource": "markets.sources.registry.source_choices",
        "MarketKind": "markets.models.Market.Kind",
        "MarketStatus": "markets.models.Market.Status",
        "PriceSource": "markets.models.Outcome.PriceSource",
        "QuestionStatus": "markets.models.Question.Status",
        "QuestionReason": "markets.models.QuestionEntry.Reason",
        "RunStatus": "foundation.models.Run.Status",
        "CohortStatus": "cohorts.models.Cohort.Status",
        "AgentStatus": "agents.models.Agent.Status",
        "ChainProtocol": "agents.models.chain.Protocol",
        "Action": "agents.models.Decision.Action",
        "DecisionStatus": "agents.models.Decision.Status",
        "CallResult": "agents.models.ModelCall.Result",
        "TradeKind": "agents.models.Trade.Kind",
        "PositionStatus": "agents.models.Position.Status",
        "SettlementKind": "agents.models.Settlement.Kind",
        "JournalKind": "agents.models.JournalEntry.Kind",
        "InstructionKind": [("BET", "BET"), ("SELL", "SELL")],
        "EnvelopeState": "agents.models.Envelope.State",
        "TaskState": [("open", "open"), ("answered", "answered")],
    },
}

# Messages only name a job; the truth is in our rows. A decision run may take hours (seven models, each up to its
# time-out, several cohorts), so no message is delivered twice within a day.
Q_CLUSTER = {
    "name": "arena",
    "orm": "default",
    # Runs the scheduler instead of the guard process, which sleeps through a clock that is set back.
    "broker_class": "arena_site.operations.scheduler.SchedulerBroker",
    "scheduler": False,
    "workers": 3,  # one for each of jobs.Lane at least
    "max_rss": 120_000,  # KiB, after a job: a new process takes the place of one that has grown
    "timeout": 6 * 3600,
    "retry": 24 * 3600,
    "ack_failures": True,
    "max_attempts": 1,
    "catch_up": False,
    "save_limit": 200,
    "queue_limit": 20,
    "poll": 2,
    "label": "Schedules and tasks",
    "ALT_CLUSTERS": {},
}

# "json" is for machines that collect logs: one object a line, each step of a decision among them.
LOGGING = logs.configuration(conf.read(env, "ARENA_LOG", "line", conf.one_of(*logs.FORMATS)))
