"""Builds the application that gunicorn serves."""

import contextlib
import ctypes
import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

_M_ARENA_MAX, _ARENAS = -8, 2  # mallopt(3)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "leaderboard.settings")
django = get_wsgi_application()

from leaderboard.delivery.cached_answers import repeat_public  # noqa: E402 - its models need the settings
from leaderboard.operations.access_log import observed  # noqa: E402

application = observed(repeat_public(django))
# The views are imported now, not by the first reader. All that is known so far lives as long as the
# process: a full collection of garbage would look through it for 50 ms in the midst of a request.
get_resolver().check()
# A pool of memory for each of eight threads holds 4 MB more. Only glibc's malloc has such.
with contextlib.suppress(AttributeError):
    ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)
gc.collect()
gc.freeze()
