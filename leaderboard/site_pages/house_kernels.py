"""Serves the text that teaches how one would write these kernels."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

TEXT = Path(settings.BASE_DIR) / "docs" / "house-kernels.md"


@require_safe
def house_kernels(request: HttpRequest) -> HttpResponse:
    return HttpResponse(TEXT.read_text(), content_type="text/plain; charset=utf-8")
