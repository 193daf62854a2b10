"""Shows the API to people: every call, what it takes and what it answers, from its schema."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator

Schema = Mapping[str, Any]
ROOT = "/api/v1/"


@require_safe
def index(request: HttpRequest) -> HttpResponse:
    context = {"section": "", "groups": groups(), "site": request.build_absolute_uri("/")[:-1]}
    return render(request, "api.html", context)


@functools.cache
def groups() -> Sequence[Mapping[str, object]]:
    """Return the calls by the first word of their address; what only judging hosts call is last."""
    schema = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    calls: dict[str, list[Mapping[str, object]]] = {}
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            first = path.removeprefix(ROOT).partition("/")[0]
            calls.setdefault(first, []).append(_call(path, method, operation, schema))
    names = sorted(calls, key=lambda name: (name == "worker", name))
    return [{"name": name, "calls": calls[name]} for name in names]


def _call(path: str, method: str, operation: Schema, schema: Schema) -> Mapping[str, object]:
    says = operation.get("description", "").partition("\n\n")[0]
    taken = operation.get("requestBody", {}).get("content", {})
    answers = [
        {"status": status, "fields": list(_fields(shape, schema))}
        for status, answer in operation["responses"].items()
        for shape in [_json(answer.get("content", {}))]
        if status.startswith("2")
    ]
    return {
        "id": f"{method}-{path.removeprefix(ROOT).translate(str.maketrans('/', '-', '{}'))}",
        "method": method.upper(),
        "path": path,
        "is_link": method == "get" and "{" not in path,
        "says": says,
        "parameters": [_parameter(one) for one in operation.get("parameters", ())],
        "takes": list(_fields(_json(taken), schema)),
        "answers": answers,
    }


def _json(content: Schema) -> Schema:
    """Return the schema of a body as JSON; empty where it has none."""
    found: Schema = content.get("application/json", {}).get("schema", {})
    return found


def _parameter(told: Schema) -> Mapping[str, object]:
    return {
        "name": told["name"],
        "where": told["in"],
        "kind": _kind(told.get("schema", {})),
        "required": told.get("required", False),
        "says": told.get("description", ""),
    }


def _fields(shape: Schema, schema: Schema) -> Iterator[Mapping[str, object]]:
    """Yield the fields of an object, or of the rows of a list."""
    named = shape.get("items", shape)
    found = _resolved(named, schema)
    for name, one in found.get("properties", {}).items():
        yield {
            "name": name,
            "kind": _kind(one),
            "required": name in found.get("required", ()),
            "says": _resolved(one, schema).get("description", ""),
        }


def _resolved(shape: Schema, schema: Schema) -> Schema:
    name = shape.get("$ref", "").rpartition("/")[2]
    found: Schema = schema["components"]["schemas"][name] if name else shape
    return found


def _kind(shape: Schema) -> str:
    """Return `text`, `list of RunOut` and the like."""
    if name := shape.get("$ref", "").rpartition("/")[2]:
        return str(name)
    if shape.get("type") == "array":
        return f"list of {_kind(shape['items'])}"
    if allowed := shape.get("enum"):
        return " | ".join(map(str, allowed))
    kind = str(shape.get("format") or shape.get("type") or "value")
    return f"{kind} or null" if shape.get("nullable") else kind
