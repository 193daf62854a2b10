"""What gunicorn serves."""

import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "leaderboard.settings")
django = get_wsgi_application()

from leaderboard.kept_answers import repeat_public  # noqa: E402 - its models need the settings

application = repeat_public(django)
# The views are imported now, not by the first reader. All that is known so far lives as long as the
# process: a full collection of garbage would look through it for 50 ms in the midst of a request.
get_resolver().check()
gc.collect()
gc.freeze()
