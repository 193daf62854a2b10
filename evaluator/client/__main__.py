"""Run `pkb` of this tree: python -m evaluator.client."""

from __future__ import annotations

import sys

from .main import main

sys.exit(main())
