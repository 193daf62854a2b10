"""Names the shapes of JSON that several rooms read. `Any` stands for one nested value: what it is
depends on its key, and whoever wrote it has checked it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JsonDict = dict[str, Any]
JsonObject = Mapping[str, Any]
# The evaluator's report of one run, as it is stored: docs/data.md lists its keys.
Report = JsonObject
