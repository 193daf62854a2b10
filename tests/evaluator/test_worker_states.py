"""What a worker logs where staff have taken its host out of service."""

from __future__ import annotations

import pytest

from evaluator import worker
from evaluator.worker.site import LeaseLost, Site

SITE = Site(url="http://127.0.0.1", token="x")


def test_a_change_of_state_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Site, "_post", lambda *_: {"poll_s": 10, "state": "drained"})
    welcome = worker._hello(SITE, {})
    worker._hello(SITE, {}, welcome.state)
    assert [one.message for one in caplog.records] == ["the site says: this host is drained"]


def test_why_a_run_is_not_to_be_had_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object) -> None:
        raise LeaseLost("h is drained")

    monkeypatch.setattr(Site, "_post", refuse)
    with caplog.at_level("INFO"):
        assert SITE.claim("run", {}) is None
    assert "h is drained" in caplog.text
