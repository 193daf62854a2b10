#!/usr/bin/env python
"""Management commands of the site: `python manage.py help`."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "leaderboard.settings")
    if sys.stderr.isatty():  # a person may mean another site
        from leaderboard.kit.environment import described_site

        sys.stderr.write(f"{described_site()}\n")
    execute_from_command_line(sys.argv)
