"""Builds the application that gunicorn serves."""

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "leaderboard.settings")
django = get_wsgi_application()

from leaderboard.delivery.cached_answers import repeat_public  # noqa: E402 - its models need the settings
from leaderboard.operations.access_log import observed  # noqa: E402

application = observed(repeat_public(django))
# Import the views now, not for the first reader.
get_resolver().check()
