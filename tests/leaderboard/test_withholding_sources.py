"""Every way to hand kernels in can withhold their source; what cannot be said with that."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.test import Client

from evaluator.messages.report import Verdict
from leaderboard.models import Kernel, Run, Source, Submission, Visibility
from leaderboard.submissions import editing
from tests.leaderboard.test_client import ABOUT, Pkb, pkb, token  # noqa: F401  fixtures
from tests.leaderboard.uploads import ONE, Send
from tests.leaderboard.withheld import MARK, SOURCE, WITHHELD, finish

pytestmark = pytest.mark.django_db


def test_a_licence_to_train_needs_a_source(send: Send, owner: User) -> None:
    answer = send({**ONE, **WITHHELD, "licence": "MIT"})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "licence_of_withheld"
    made = Submission.objects.get(pk=send({**ONE, **WITHHELD}).json()["submission"])
    with transaction.atomic(), pytest.raises(IntegrityError):
        Submission.objects.filter(pk=made.pk).update(licence="MIT")
    editing.edit(made, owner, {"licence": "MIT", "withholds_source": False})
    made.refresh_from_db()
    assert (made.licence, made.withholds_source) == ("MIT", False)


def test_a_repeated_request_is_the_same_only_if_it_withholds_as_much(send: Send) -> None:
    key = {"Idempotency-Key": "once"}
    assert send({**ONE, **WITHHELD}, **key).status_code == 201
    assert send({**ONE, **WITHHELD}, **key).status_code == 200
    assert send(ONE, **key).status_code == 409
    assert send({**ONE, "withholds_source": False}, **{"Idempotency-Key": "b"}).status_code == 201
    assert send(ONE, **{"Idempotency-Key": "b"}).status_code == 200


def test_the_form_withholds_it(problem: object, client: Client, owner: User) -> None:
    client.force_login(owner)
    fields = {
        **{"model": "GPT-5.5", "harness": "human", "problem": "1", "backend": "pytorch"},
        **{"visibility": "public", "source": SOURCE, "withholds_source": "on"},
    }
    assert client.post("/submit", fields).status_code == 302
    assert Submission.objects.get().withholds_source
    assert "source withheld" in client.get("/account").content.decode()


def test_practice_withholds_it_too(send: Send, client: Client, owner: User) -> None:
    made = send({**ONE, **WITHHELD, "practice": True}).json()["submission"]
    editing.edit(Submission.objects.get(pk=made), owner, {"visibility": Visibility.PUBLIC})
    kernel = Kernel.objects.get()
    assert client.get(f"/api/v1/kernels/{kernel.source_id}").json()["withheld"] is True


def test_the_command_line_withholds_it(problem: object, tmp_path: Path) -> None:
    (tmp_path / "1_allreduce_pytorch.py").write_text(SOURCE)
    told = {"model": "GPT-5.5", "harness": "human"}
    call_command("import_submission", str(tmp_path), "--withhold-source", **told)
    assert Submission.objects.get().withholds_source
    assert Source.objects.get().text == SOURCE


@pytest.mark.django_db(transaction=True)
def test_the_client_withholds_it(
    problem: object,
    pkb: Pkb,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    for attempt in ("1", "2"):
        (folder / f"attempt_{attempt}").mkdir()
        name = folder / f"attempt_{attempt}" / "1_allreduce_pytorch.py"
        name.write_text(SOURCE + "#" * int(attempt))
    one = folder / "attempt_1" / "1_allreduce_pytorch.py"
    for path in (one, folder):
        done = pkb("submit", path, *ABOUT, "--withhold-source")
        assert done.status == 0, done.err
    assert set(Submission.objects.values_list("withholds_source", flat=True)) == {True}
    first, second = Run.objects.filter(kernel__submission=Submission.objects.latest("pk"))
    assert MARK in pkb("diff", first.pk, second.pk).out
    finish(first, Verdict.BUILD_ERROR)
    monkeypatch.setenv("PKB_TOKEN", "")
    refused = pkb("diff", first.pk, second.pk)
    assert "withheld by its submitter" in refused.err
    assert MARK not in refused.out + refused.err
    assert "source withheld by its submitter" in pkb("logs", first.pk).out
