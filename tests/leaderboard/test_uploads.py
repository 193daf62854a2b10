"""Archives in parts: who may send what, and that a submission uses them once."""

from __future__ import annotations

import hashlib
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from evaluator.client import sources, transport
from evaluator.client.failures import NoAnswer, Refused
from leaderboard.models import Submission, Upload, UploadPart
from leaderboard.submissions.archives import MAX_UPLOAD_BYTES
from tests.leaderboard import factory
from tests.leaderboard.conftest import Api
from tests.leaderboard.test_client import ABOUT as ABOUT_IT
from tests.leaderboard.test_client import Pkb, pkb, token  # noqa: F401  fixtures
from tests.leaderboard.uploads import ABOUT, GOOD, NAME, URL, Send, make_zip

UPLOADS = "/api/v1/uploads"


@pytest.fixture
def client(send: Send, api: Api, owner: User) -> APIClient:
    """`owner`, on a site that has problems."""
    return api(owner)


def _begin(client: APIClient, data: bytes, **other: Any) -> Any:
    told = {"size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), **other}
    return client.post(UPLOADS, told, format="json")


def _put(client: APIClient, upload: str, offset: object, data: bytes) -> Any:
    path = f"{UPLOADS}/{upload}?offset={offset}"
    return client.put(path, data, content_type="application/octet-stream")


def _sent(client: APIClient, data: bytes) -> str:
    found = str(_begin(client, data).data["id"])
    for offset in range(0, len(data), 100):
        answer = _put(client, found, offset, data[offset : offset + 100])
        assert answer.status_code == 200, answer.data
    return found


def _submit(client: APIClient, upload: str, key: str = "", **fields: str) -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    return client.post(URL, {**ABOUT, "upload": upload, **fields}, format="json", headers=headers)


def _code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def _archive(more: int = 300) -> bytes:
    return make_zip({NAME: GOOD, "run.log": Random(more).randbytes(more)})


def test_an_archive_in_parts_is_one_submission(client: APIClient) -> None:
    data = _archive()
    upload = _sent(client, data)
    first, again = (_submit(client, upload, "key") for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200), first.data
    assert first.data["runs"] == again.data["runs"]
    assert Submission.objects.count() == 1
    assert not UploadPart.objects.exists()
    assert _code(_submit(client, upload, "key", notes="other")) == (409, "upload_used")
    assert _code(_submit(client, upload)) == (409, "upload_used")
    assert _code(_put(client, upload, len(data), b"x")) == (409, "upload_used")
    # Sent again, it is still the same request.
    assert _submit(client, _sent(client, data), "key").status_code == 200
    assert Submission.objects.count() == 1
    assert not UploadPart.objects.exists()


def test_it_is_the_same_request_as_a_form(client: APIClient, send: Send) -> None:
    data = _archive()
    headers = {"Idempotency-Key": "key"}
    assert send(ABOUT, data, **headers).status_code == 201
    assert _submit(client, _sent(client, data), "key").status_code == 200


def test_the_next_part_begins_where_the_last_one_ended(client: APIClient) -> None:
    data = b"0123456789"
    upload = _begin(client, data).data["id"]
    assert _put(client, upload, 0, data[:4]).data["stored_bytes"] == 4
    assert _put(client, upload, 0, data[:4]).data["stored_bytes"] == 4
    for offset, part in ((0, b"012x"), (0, b"012"), (2, b"23"), (5, b"5"), (0, b"")):
        assert _code(_put(client, upload, offset, part)) == (409, "wrong_offset")
    assert _code(_put(client, upload, 4, b"")) == (400, "empty_part")
    assert _code(_put(client, upload, 4, data)) == (413, "too_large")
    for bad in ("", "-1", "x", "1e3", "9" * 30):
        assert _code(_put(client, upload, bad, b"x")) == (400, "invalid")
    # Who lost the answer asks what is stored.
    told = _begin(client, data)
    assert (told.status_code, str(told.data["id"]), told.data["stored_bytes"]) == (200, upload, 4)
    assert _code(_submit(client, upload)) == (409, "upload_not_complete")


def test_only_its_owner_appends_to_it_or_uses_it(client: APIClient, api: Api) -> None:
    data = _archive()
    upload, other = _sent(client, data), api(factory.make_user("other"))
    for who in (upload, str(uuid.uuid4())):
        assert _code(_put(other, who, 0, data[:100])) == (404, "unknown_upload")
        assert _code(_submit(other, who)) == (404, "unknown_upload")
    assert _code(_begin(APIClient(), data)) == (401, "no_token")
    assert _begin(other, data).data["id"] != upload
    assert _submit(client, upload).status_code == 201


def test_what_was_announced_is_checked(client: APIClient) -> None:
    sizes = [{"size_bytes": MAX_UPLOAD_BYTES + 1}, {"size_bytes": 0}]
    faults: list[dict[str, Any]] = [*sizes, {"sha256": "x"}]
    for wrong in faults:
        assert _code(_begin(client, b"x", **wrong)) == (400, "invalid")
    upload = str(_begin(client, b"data", sha256="0" * 64).data["id"])
    _put(client, upload, 0, b"data")
    assert _code(_submit(client, upload)) == (400, "wrong_sha256")
    assert not Upload.objects.exists()


def test_an_archive_that_cannot_be_read_is_not_kept(client: APIClient) -> None:
    assert _code(_submit(client, _sent(client, b"no archive"))) == (400, "bad_archive")
    assert not Upload.objects.exists()
    # One whose request is at fault is: it need not be sent again.
    upload = _sent(client, _archive())
    assert _submit(client, upload, step_budget="x").status_code == 400
    assert _submit(client, upload, licence="MIT", withholds_source="true").status_code == 400
    assert _submit(client, upload).status_code == 201


def test_it_is_sent_alone(client: APIClient) -> None:
    upload = _sent(client, _archive())
    answer = _submit(client, upload, problem="allreduce", backend="pytorch", source="x")
    assert set(answer.json()["error"]["fields"]) >= {"problem", "backend", "source"}
    assert _submit(client, "1").json()["error"]["fields"].keys() == {"upload"}


def test_a_person_has_two_open_uploads(client: APIClient) -> None:
    first, _ = (_sent(client, _archive(n)) for n in (1, 2))
    refused = _begin(client, _archive(3))
    assert _code(refused) == (429, "upload_quota")
    assert refused["Retry-After"]
    old = timezone.now() - timedelta(minutes=11)
    Upload.objects.filter(pk=first).update(touched_at=old)
    assert _begin(client, _archive(3)).status_code == 201
    assert not Upload.objects.filter(pk=first).exists()


def test_the_site_keeps_so_much_of_all_uploads(client: APIClient, settings: Any) -> None:
    settings.PKB_MAX_UPLOADS_BYTES = 5
    upload = str(_begin(client, b"0123456789").data["id"])
    assert _put(client, upload, 0, b"01234").status_code == 200
    full = _put(client, upload, 5, b"5")
    assert _code(full) == (503, "uploads_full")
    assert full["Retry-After"] == "600"


def test_a_part_has_the_limit_of_a_request(client: APIClient, settings: Any) -> None:
    settings.PKB_MAX_BODY_BYTES = 200
    told = _begin(client, bytes(300)).data
    assert told["part_bytes"] == 200
    assert _code(_put(client, told["id"], 0, bytes(201))) == (413, "too_large")


def test_a_day_later_it_is_gone(client: APIClient) -> None:
    _sent(client, _archive())
    Upload.objects.update(created_at=timezone.now() - timedelta(hours=25))
    _begin(client, b"x")
    assert Upload.objects.count() == 1
    assert not UploadPart.objects.exists()


@pytest.fixture
def large(problem: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Path:
    """An archive that is larger than one request of these sites may be."""
    settings.PKB_MAX_BODY_BYTES = 600
    monkeypatch.setattr(sources, "MAX_ARCHIVE_BYTES", 1000)
    settings.PKB_MAX_ARCHIVE_BYTES = 1000
    path = tmp_path / "large.zip"
    path.write_bytes(_archive(2500))
    return path


@pytest.mark.django_db(transaction=True)
def test_the_client_sends_parts_by_itself(
    pkb: Pkb,  # noqa: F811
    large: Path,
) -> None:
    first, again = (pkb("submit", large, *ABOUT_IT) for _ in range(2))
    assert (first.status, again.status) == (0, 0), first.err
    assert first.out == again.out
    assert Submission.objects.count() == 1
    assert not Upload.objects.open().exists()
    other = pkb("submit", large, *ABOUT_IT, "--notes", "another")
    assert other.status == 0, other.err
    assert Submission.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_the_client_goes_on_after_a_lost_connection(
    pkb: Pkb,  # noqa: F811
    large: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The third part fails for good; then the answer to the fourth is lost, and the answer to the
    submission."""
    monkeypatch.setattr(transport, "PAUSES_S", (0.0,))
    sent, real = list[str](), transport.send
    lost = {"offset=1200": True, "offset=1800": False, "submissions": False}

    def send(request: urllib.request.Request) -> transport.Answer:
        sent.append(request.full_url.rpartition("/")[2].rpartition("?")[2])
        is_for_good = lost.get(sent[-1])
        if is_for_good:
            raise NoAnswer("lost")
        answer = real(request)
        if lost.pop(sent[-1], None) is not None:
            raise NoAnswer("lost")
        return answer

    monkeypatch.setattr(transport, "send", send)
    assert pkb("submit", large, *ABOUT_IT).status == 4
    assert sent == ["uploads", "offset=0", "offset=600", "offset=1200", "offset=1200"]
    assert Upload.objects.get().stored_bytes == 1200
    del lost["offset=1200"]
    sent.clear()
    done = pkb("submit", large, *ABOUT_IT)
    assert done.status == 0, done.err
    parts = ["offset=1200", "offset=1800", "offset=1800", "offset=2400"]
    assert sent == ["uploads", *parts, "submissions", "submissions"]
    assert Submission.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_one_of_parallel_parts_is_stored(
    client: APIClient,
    token: str,  # noqa: F811
    live_server: Any,
) -> None:
    """Each of them is other bytes at the same offset."""
    upload = str(_begin(client, bytes(1000)).data["id"])
    site = transport.SiteAddress(live_server.url, token)

    def put(byte: int) -> str:
        try:
            site.put(f"{UPLOADS}/{upload}?offset=0", bytes([byte]) * 100)
        except Refused as refused:
            return refused.code
        return "stored"

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(put, range(4))) == ["stored", *["wrong_offset"] * 3]
    assert Upload.objects.get().stored_bytes == 100
    assert UploadPart.objects.count() == 1
