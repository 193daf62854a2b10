"""Reads all settings from the environment: docs/settings.md lists every one."""

from __future__ import annotations

from pathlib import Path

from csp.constants import NONE, SELF

from evaluator import __version__
from leaderboard.account_pages.login_settings import *  # noqa: F403
from leaderboard.account_pages.login_settings import (
    ADMINS,
    IS_MAIL_KEPT,
    LOGIN_APPS,
    PROVIDER_ORIGINS,
)
from leaderboard.kit import environment as env
from leaderboard.kit.secret_key_file import secret_key_path

BASE_DIR = Path(__file__).resolve().parent.parent
env.check_site(BASE_DIR)
STATE_DIR = Path(env.text("PKB_STATE_DIR", str(BASE_DIR / ".local"))).resolve()
STATE_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)

DEBUG = env.flag("DEBUG", default=True)
SECRET_KEY = (env.text("SECRET_KEY", "") if DEBUG else env.text("SECRET_KEY")) or (
    secret_key_path(STATE_DIR).read_text()
)
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
if not DEBUG:
    env.check_public(SECRET_KEY, ALLOWED_HOSTS)
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")
PKB_PUBLIC_URL = env.text("PKB_PUBLIC_URL", "").rstrip("/")

SOFTWARE_VERSION = __version__

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.sitemaps",
    "rest_framework",
    "drf_spectacular",
    *LOGIN_APPS,
    "leaderboard",
]
MIDDLEWARE = [
    "leaderboard.operations.probes.answer_probes",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "leaderboard.operations.probes.insist_on_schema",
    "leaderboard.delivery.middleware.limit_body",
    "leaderboard.delivery.middleware.refuse_nul",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "leaderboard.account_pages.second_factor.InsistOnSecondFactor",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "leaderboard.urls"
WSGI_APPLICATION = "leaderboard.wsgi.application"
APPEND_SLASH = False
# The site's own pages, then those that come with Django.
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.jinja2.Jinja2",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "environment": "leaderboard.delivery.jinja.environment",
            "words": "leaderboard.account_pages.frame.WORDS",
        },
    },
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
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

DATABASES = {"default": env.database(env.text("DATABASE_URL", f"sqlite:///{STATE_DIR}/db.sqlite3"))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

STATIC_URL = "/static/"
STATIC_ROOT = STATE_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = DEBUG
STATIC_ROOT.mkdir(parents=True, exist_ok=True)
HASHED = (
    "whitenoise.storage.CompressedManifestStaticFilesStorage"
    if env.flag("STATIC_BROTLI", default=True)
    else "leaderboard.delivery.static_files.gzipped"
)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage" if DEBUG else HASHED
    },
}
CACHES = {
    # Counts what all processes of the site count together: attempts to log in, submissions.
    "default": {
        "BACKEND": "leaderboard.delivery.shared_cache.SharedCache",
        "LOCATION": "leaderboard_shared_cache",
        "OPTIONS": {"MAX_ENTRIES": 10_000},
    },
    "process": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "OPTIONS": {"MAX_ENTRIES": 10_000},
    },
}

SECURE_SSL_REDIRECT = env.flag("SECURE_SSL_REDIRECT", default=False)
SECURE_HSTS_SECONDS = env.number("SECURE_HSTS_SECONDS", 0)
# Other names of the domain are not this site's to speak for: SECURITY.md.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = env.flag("SECURE_COOKIES", default=not DEBUG)
if env.flag("BEHIND_TLS_PROXY", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
X_FRAME_OPTIONS = "DENY"
# The hash is of the empty style element that plotly.js makes before it fills it through CSSOM.
EMPTY_STYLE = "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF, EMPTY_STYLE],
        "img-src": [SELF, "data:", "blob:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        # Browsers hold a form to it that leads on to where people log in, too.
        "form-action": [SELF, *PROVIDER_ORIGINS],
        "frame-ancestors": [NONE],
    }
}

NUM_PROXIES = env.number("NUM_PROXIES", 0)
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["leaderboard.api.access.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["leaderboard.api.access.ReadOrSubmit"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["leaderboard.api.parsing.ObjectParser"],
    "DEFAULT_THROTTLE_CLASSES": [
        "leaderboard.api.access.ReadThrottle",
        "leaderboard.api.access.SubmitThrottle",
    ],
    "DEFAULT_THROTTLE_RATES": {
        "read": env.text("THROTTLE_READ", "1200/min"),
        "submit": env.text("THROTTLE_SUBMIT", "120/hour"),
        "training": env.text("THROTTLE_TRAINING", "600/min"),
    },
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "leaderboard.api.errors.handle",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "PKB Leaderboard API",
    "DESCRIPTION": "Read results, submit kernels, follow their evaluation. See docs/api.md.",
    "VERSION": SOFTWARE_VERSION,
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PUBLIC": True,
    "COMPONENT_SPLIT_REQUEST": True,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "leaderboard.api.schema.with_errors",
    ],
}

CELERY_BROKER_URL = env.text("CELERY_BROKER_URL", "filesystem://")
CELERY_BROKER_FOLDER = STATE_DIR / "broker"

PKB_LEASE_S = env.number("PKB_LEASE_S", 60)
PKB_RUN_S = env.number("PKB_RUN_S", 3600)
PKB_HEARTBEAT_S = env.number("PKB_HEARTBEAT_S", 15)
PKB_POLL_S = env.number("PKB_POLL_S", 10)
PKB_RERING_S = env.number("PKB_RERING_S", 30)
PKB_HOST_SILENCE_S = env.number("PKB_HOST_SILENCE_S", 30)
PKB_PRACTICE_RUNS = env.number("PKB_PRACTICE_RUNS", 16)
PKB_TRAINING_IN_FLIGHT = env.number("PKB_TRAINING_IN_FLIGHT", 64)
PKB_TRAINING_KEEP_S = env.number("PKB_TRAINING_KEEP_S", 3600)
PKB_QUEUED_RUNS_PER_ACCOUNT = env.number("PKB_QUEUED_RUNS_PER_ACCOUNT", 2000)
PKB_MAX_BODY_BYTES = env.number("PKB_MAX_BODY_BYTES", 16 << 20)
PKB_MAX_ARCHIVE_BYTES = env.number("PKB_MAX_ARCHIVE_BYTES", 64 << 20)
PKB_MAX_UPLOADS_BYTES = env.number("PKB_MAX_UPLOADS_BYTES", 4 << 30)
DATA_UPLOAD_MAX_MEMORY_SIZE = PKB_MAX_BODY_BYTES

METRICS_TOKEN = env.text("METRICS_TOKEN", "")

EMAIL_FILE_PATH = STATE_DIR / "mail"
if IS_MAIL_KEPT:
    EMAIL_FILE_PATH.mkdir(mode=0o700, exist_ok=True)
if SENTRY_DSN := env.text("SENTRY_DSN", ""):
    import sentry_sdk

    sentry_sdk.init(dsn=SENTRY_DSN, release=SOFTWARE_VERSION, send_default_pii=False)

ACCESS_LOG = env.text("ACCESS_LOG", "-")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {
        "request": {"()": "leaderboard.kit.request_names.WithRequestId"},
        "once": {"()": "leaderboard.kit.request_names.OnceAMinute"},
    },
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s %(request_id)s: %(message)s"},
        "plain": {"format": "%(message)s"},
    },
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["request"]},
        # It reopens a file that was renamed: logrotate needs to tell nobody.
        "access": {"class": "logging.StreamHandler", "formatter": "plain"}
        if ACCESS_LOG == "-"
        else {
            "class": "logging.handlers.WatchedFileHandler",
            "filename": ACCESS_LOG,
            "formatter": "plain",
        },
        "mail": {
            "class": "django.utils.log.AdminEmailHandler",
            "level": "ERROR",
            "filters": ["once"],
        },
    },
    "root": {
        "handlers": ["console", "mail"] if ADMINS else ["console"],
        "level": env.text("LOG_LEVEL", "INFO"),
    },
    "loggers": {
        "leaderboard.access": {"handlers": ["access"], "level": "INFO", "propagate": False},
    },
}
