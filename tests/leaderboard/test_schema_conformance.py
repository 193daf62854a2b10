"""The API answers as its schema says, whatever is asked."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from leaderboard.models import Run
from tests.leaderboard import factory

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture
def api_schema(run: Run) -> Any:
    factory.finish(run, factory.make_report(run))
    return schemathesis.openapi.from_wsgi("/api/v1/schema?format=json", WSGIHandler())


schema = schemathesis.pytest.from_fixture("api_schema").include(method="GET")


@schema.parametrize()
@settings(
    max_examples=8,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
def test_answers_are_as_the_schema_says(case: Any) -> None:
    case.headers["Host"] = "localhost"
    case.call_and_validate(checks=CHECKS)
