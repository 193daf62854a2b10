"""Checks kernels and hands them in: a file, a folder or an archive. Sent twice, they are one
submission."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from . import packing, sources
from .catalogue import problem_called
from .checking import Checked, WantedSetting, checked
from .console import note, say, say_json
from .credentials import site_called
from .failures import OK, WRONG_VERDICT, Misused
from .transport import SiteAddress
from .uploading import uploaded
from .watching import watch_all

ADDRESS = "/api/v1/submissions"
FIELDS = (
    *("model", "vendor", "harness", "visibility", "public_from", "practice"),
    *("team", "link", "licence", "notes", "withholds_source"),
    *("step_budget", "cost_usd", "attempt"),
    *("device", "hardware", "world_size", "size", "dtype", "profile", "placement"),
)


_TOO_LARGE = (
    "Leave out transcripts/, or the earlier steps of attempts: a submission is one archive, so that"
    " all of it is judged together."
)
OF_ONE = ("problem", "backend", "step")


def check(arguments: Namespace) -> int:
    """Say of each kernel what speaks against it and what its hosts need; no site is asked."""
    wanted = WantedSetting(**{name: getattr(arguments, name) for name in WantedSetting._fields})
    found: list[Checked] = []
    for path in arguments.paths:
        of_path = sources.members(path)
        is_alone = path.is_file() and not sources.is_archive(path)
        found += [checked(member, wanted, is_alone=is_alone) for member in of_path]
        if not of_path:
            raise Misused(f"{path} has no kernel.", "Kernels are called 1_allreduce_cuda.py.")
    if arguments.json:
        say_json([_record(one) for one in found])
    else:
        for one in found:
            _say(one)
    return OK if all(one.is_fine for one in found) else WRONG_VERDICT


def _record(one: Checked) -> dict[str, Any]:
    return {
        **one._asdict(),
        "findings": [each._asdict() for each in one.findings],
        "is_fine": one.is_fine,
    }


def _say(one: Checked) -> None:
    known = [text for text in (one.problem, one.backend, one.device) if text]
    say(f"{one.path}: {', '.join(known)}")
    for each in one.findings:
        say(f"  {each.kind:8} {each.text}")
    if one.needs:
        say(f"  needs    {', '.join(one.needs)}")
    if one.is_fine:
        say("  fine")


class _Request(NamedTuple):
    """Holds what is posted. Two with the same digest are the same, however the archive comes."""

    body: bytes
    content_type: str
    digest: str
    fields: Mapping[str, Any]
    archive: bytes = b""


def submit(arguments: Namespace) -> int:
    """Hand kernels in, and with `--wait` follow their runs."""
    site = site_called(arguments.site)
    if site.token is None:
        raise Misused("There is no token.", f"pkb login {site.url}, or PKB_TOKEN.")
    path = arguments.path
    is_one = not path.is_dir() and not sources.is_archive(path)
    made = _of_source(path, arguments) if is_one else _of_archive(path, arguments)
    if len(made.body) > sources.MAX_ARCHIVE_BYTES:
        made = _in_parts(made, site)
    headers = {"Content-Type": made.content_type, "Idempotency-Key": arguments.key or made.digest}
    answer = dict(site.post(ADDRESS, made.body, headers, is_patient=True).json())
    if not arguments.json:
        _say_accepted(answer)
    elif not arguments.wait:
        say_json(answer)
    if not arguments.wait:
        return OK
    return watch_all(site, [run["id"] for run in answer["runs"]], as_json=arguments.json)


def _in_parts(made: _Request, site: SiteAddress) -> _Request:
    """Send the archive of a request; return the same request, which names the upload."""
    fields = {**made.fields, "upload": uploaded(site, made.archive)}
    return made._replace(body=json.dumps(fields).encode(), content_type="application/json")


def _say_accepted(answer: dict[str, Any]) -> None:
    say(f"submission {answer['submission']}  {answer['url']}")
    for run in answer["runs"]:
        say(f"  run {run['id']}  {run['problem']}")
    for run, why in answer.get("waiting", {}).items():
        say(f"  run {run} waits: {why}")
    for run, why in answer.get("not_scored", {}).items():
        say(f"  run {run}: {why}")
    for why in answer.get("no_host", []):
        say(f"  {why}")


def _of_source(path: Path, arguments: Namespace) -> _Request:
    """Return the request that hands in one file. Raises Misused."""
    said = sources.named(PurePosixPath(path.name))
    problem, backend = arguments.problem, arguments.backend
    if said is not None and said.number is not None:
        problem = problem or problem_called(said.problem).slug
        backend = backend or said.backend
    if problem is None or backend is None:
        fix = "Give --problem and --backend, or call it 1_allreduce_cuda.py."
        raise Misused(f"{path.name} does not say its problem and its backend.", fix)
    try:
        source = sources.read(path, sources.MAX_SOURCE_BYTES).decode()
    except UnicodeDecodeError as error:
        raise Misused(f"{path} is not UTF-8 (byte {error.start}).", "Save it as UTF-8.") from None
    fields = {**_fields(arguments), "problem": problem, "backend": backend, "source": source}
    _check_harness(fields, path)
    if arguments.step is not None:
        fields["step"] = arguments.step
    body, digest = json.dumps(fields).encode(), packing.digest_of(fields)
    return _Request(body, "application/json", digest, fields)


def _of_archive(path: Path, arguments: Namespace) -> _Request:
    """Return the request that hands in a folder or an archive. Raises Misused."""
    if any(value is not None for value in map(vars(arguments).get, OF_ONE)):
        raise Misused(f"{', '.join(OF_ONE)} are of one file.", "Names of files say them here.")
    if path.is_dir():
        members = sources.folder_members(path)
        archive = packing.packed({str(member.path): member.data for member in members})
    else:
        with path.open("rb") as file:
            archive = file.read(sources.MAX_UPLOAD_BYTES + 1)
    if len(archive) > sources.MAX_UPLOAD_BYTES:
        most = f"{sources.MAX_UPLOAD_BYTES >> 20} MiB"
        raise Misused(f"{path} packs to more than {most}.", _TOO_LARGE)
    manifest = sources.manifest_of(archive)
    told = _told_by(manifest)
    fields = {**told, **_fields(arguments)}
    _check_harness(fields, path)
    if manifest:
        _note_manifest({**told, "sampling": manifest.get("sampling")}, fields)
    body, kind = packing.form(fields, archive)
    return _Request(body, kind, packing.digest_of(fields, archive), fields, archive)


def _note_manifest(told: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    """Note what is taken from a manifest, which the site reads as well."""
    sampling = told["sampling"]
    taken = [f"{n} {told[n]}" for n in ("model", "harness") if n in told and fields[n] == told[n]]
    if isinstance(sampling, dict):
        pairs = (f"{name} {value}" for name, value in sampling.items() if value is not None)
        taken.append(f"sampling {', '.join(pairs)}")
    if taken:
        note(f"from the manifest: {'; '.join(taken)}")


def _told_by(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return model and harness as a manifest says them; one-shot is asked for as zero-shot."""
    told = {name: manifest.get(name) for name in ("model", "harness")}
    told["harness"] = {"one-shot": "zero-shot"}.get(str(told["harness"]), told["harness"])
    return {name: value for name, value in told.items() if isinstance(value, str) and value}


def _check_harness(fields: Mapping[str, Any], path: Path) -> None:
    if "harness" not in fields:
        raise Misused(f"{path} does not say its harness.", "Give --harness.")


def _fields(arguments: Namespace) -> dict[str, Any]:
    given = {name: getattr(arguments, name) for name in FIELDS}
    return {name: value for name, value in given.items() if value is not None}
