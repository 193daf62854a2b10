"""Says what names of language models mean: their addresses, and which are of the same model.

Other names are data, in `fixtures/model-aliases.json`: a preview is the model that it became.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

from django.conf import settings
from django.utils.text import slugify

ALIASES = Path(settings.BASE_DIR) / "fixtures" / "model-aliases.json"
# The address of the site's own kernels, which boards mark.
HOUSE = "house-kernels"
# No address begins with it.
HIDDEN = "."


def model_slug(name: str) -> str:
    """Return `gpt-5-5` for `GPT-5.5`; empty where a name has nothing that an address can hold."""
    return slugify(re.sub(r"[./]", "-", name))[:80].strip("-")


def hidden_slug(slug: str, owner_id: int) -> str:
    """Return the slug of an owner's own row of a model that nobody else is to know of."""
    return f"{HIDDEN}{owner_id}.{hashlib.sha256(slug.encode()).hexdigest()[:32]}"


def known_as(name: str) -> str:
    """Return the name under which the site shows a model that is handed in under this one."""
    return aliases().get(model_slug(name), name)


@functools.cache
def aliases() -> Mapping[str, str]:
    """Return the shown name of each other name, as an address has it."""
    names = json.loads(ALIASES.read_text())["names"]
    return {model_slug(other): shown for shown, others in names.items() for other in others}
