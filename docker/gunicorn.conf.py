"""Configures gunicorn: `gunicorn --config docker/gunicorn.conf.py ...`, in the project's folder."""

import os
import shutil
import tempfile
from typing import Any

worker_class = "gthread"
workers = 2
threads = 8
# Only BEHIND_TLS_PROXY decides whether X-Forwarded-Proto is believed, whoever connects.
secure_scheme_headers: dict[str, str] = {}
# A proxy in front cuts slow clients off; without one a thread waits no longer for its next request.
keepalive = 5

# Where the workers' counts of requests meet. Named before one of them imports prometheus_client.
os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="pkb-metrics-")


def on_exit(server: Any) -> None:
    shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"], ignore_errors=True)
