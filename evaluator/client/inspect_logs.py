"""Reads logs of Inspect: `.eval` files, and the same as `.json`."""

from __future__ import annotations

import importlib
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .attempts import Used
from .completions import AGENTIC
from .failures import Misused
from .recorded import (
    CUT_OFF,
    MAX_RECORDING_BYTES,
    Recorded,
    Told,
    Wanted,
    added,
    an_object,
    asked_in,
    calls_tools,
    field_of,
    message_of,
    number_of,
    samplings,
    text_of,
    tokens_of,
)
from .sources import read as read_bytes

HEADER, SAMPLES = "header.json", "samples/"
MOST_SAMPLES = 100_000
MAX_SAMPLE_BYTES = 64 << 20
ZSTANDARD = 93  # how newer versions of Inspect pack
_UNPACK = (
    "Run `inspect log convert --to json --output-dir json {path}` and convert the .json, or run pkb"
    " by the Python that has inspect-ai."
)
_LIMITS = {
    **dict.fromkeys(("message", "turn"), "steps"),
    **dict.fromkeys(("time", "working"), "budget_hours"),
    **{"token": "budget_tokens", "cost": "budget_usd", "context": "context"},
}


def read(path: Path, wanted: Wanted) -> Told:
    """Return the answers of a log. Raises Misused."""
    header, samples = _of_zip(path) if path.suffix.lower() == ".eval" else _of_json(path)
    model = field_of(header, "eval.model")
    if not isinstance(model, str):
        raise Misused(f"{path} is no log of Inspect.", "It has no `eval.model`.")
    answers = [_answer(each, model, path, wanted) for each in samples]
    version = field_of(header, "eval.packages.inspect_ai")
    manifest: dict[str, Any] = {
        "model": model.rpartition("/")[2],
        "provider": _provider(header, model),
        "harness_version": f"inspect {version}" if version else "inspect",
        "sampling": samplings(an_object(field_of(header, "plan.config"))),
    }
    if any(calls_tools(each.messages) for each in answers):
        manifest["harness"] = AGENTIC
    return Told(answers, manifest)


def _provider(header: dict[str, Any], model: str) -> str | None:
    """Return who serves a model; None if an address of the caller's own does."""
    is_own = field_of(header, "eval.model_base_url") is not None
    return None if is_own or "/" not in model else model.partition("/")[0]


def _of_json(path: Path) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    log = _object(text_of(path), str(path))
    samples = log.get("samples")
    return log, (an_object(each) for each in (samples if isinstance(samples, list) else ()))


def _of_zip(path: Path) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    data = io.BytesIO(read_bytes(path, MAX_RECORDING_BYTES))
    try:
        archive = zipfile.ZipFile(data)
        if any(entry.compress_type == ZSTANDARD for entry in archive.infolist()):
            _know_zstandard(path)
            archive = zipfile.ZipFile(data)
        header = _object(_member(archive, HEADER), f"{path}: {HEADER}")
    except (zipfile.BadZipFile, KeyError, OSError, EOFError) as error:
        raise Misused(f"{path} is damaged: {error}.", "Has its run ended?") from None
    return header, _samples(archive, path)


def _know_zstandard(path: Path) -> None:
    """Have Python unpack Zstandard, as it does by itself since 3.14. Raises Misused."""
    if hasattr(zipfile, "ZIP_ZSTANDARD"):
        return
    try:
        importlib.import_module("zipfile_zstd")  # comes with inspect-ai
    except ImportError:
        raise Misused(f"{path} is packed by Zstandard.", _UNPACK.format(path=path)) from None


def _samples(archive: zipfile.ZipFile, path: Path) -> Iterator[dict[str, Any]]:
    names = [name for name in archive.namelist() if name.startswith(SAMPLES)]
    if len(names) > MOST_SAMPLES:
        raise Misused(f"{path} has more than {MOST_SAMPLES} samples.")
    for name in sorted(names):
        yield _object(_member(archive, name), f"{path}: {name}")


def _member(archive: zipfile.ZipFile, name: str) -> str:
    with archive.open(name) as file:
        data = file.read(MAX_SAMPLE_BYTES + 1)
    if len(data) > MAX_SAMPLE_BYTES:
        raise Misused(f"{name} is larger than {MAX_SAMPLE_BYTES >> 20} MiB.")
    return data.decode(errors="replace")


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        return an_object(json.loads(text))
    except (ValueError, RecursionError):
        raise Misused(f"{where} is no JSON.") from None


def _answer(sample: dict[str, Any], model: str, path: Path, wanted: Wanted) -> Recorded:
    epoch = sample.get("epoch")
    output = an_object(sample.get("output"))
    choices = output.get("choices")
    choice = an_object(choices[0]) if isinstance(choices, list) and choices else {}
    finish = choice.get("stop_reason")
    turns = sample.get("messages")
    messages = [message_of(an_object(each)) for each in (turns if isinstance(turns, list) else ())]
    answers = sum(each["role"] == "assistant" for each in messages)
    usage = added([tokens_of(an_object(sample.get("model_usage")).get(model))])
    return Recorded(
        where=f"{path}: sample {sample.get('id')}, epoch {epoch}",
        problem=_problem(sample, wanted),
        sample=epoch if isinstance(epoch, int) else None,
        text=_text(output, choice),
        backend=field_of(sample, "metadata.backend"),
        is_cut=finish in CUT_OFF,
        ended=_ended(sample),
        prompt=asked_in(messages),
        messages=messages,
        used=Used(
            usage=usage,
            answers=answers,
            answers_without_usage=0 if usage else answers,
            wall_s=number_of(sample.get("working_time")),
            finish=finish if isinstance(finish, str) else None,
            served_by=output["model"] if isinstance(output.get("model"), str) else None,
        ),
    )


def _text(output: dict[str, Any], choice: dict[str, Any]) -> str | None:
    """Return the answer: `completion`, which logs of today have, else that of the first choice."""
    text = output.get("completion")
    if isinstance(text, str):
        return text
    return message_of(an_object(choice.get("message")))["text"] or None


def _problem(sample: dict[str, Any], wanted: Wanted) -> object:
    """Return the field that is named, else `metadata.problem`, else an id in words: Inspect numbers
    samples by itself, so a number alone names no problem."""
    if wanted.problem_field:
        return field_of(sample, wanted.problem_field)
    name = field_of(sample, "metadata.problem")
    own = sample.get("id")
    is_word = isinstance(own, str) and not own.isdigit()
    return name if name is not None else own if is_word else None


def _ended(sample: dict[str, Any]) -> str | None:
    if sample.get("error"):
        return "unfinished"
    limit = field_of(sample, "limit.type")
    return _LIMITS.get(str(limit), "unfinished") if limit else None
