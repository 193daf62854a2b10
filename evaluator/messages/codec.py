"""Turns frozen dataclasses into JSON values and back, checked against their annotations.

The messages that cross a process or a network are decoded here and nowhere else, so a field that is
missing, unknown or of another type is refused before any code sees it.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")
MOST = 1 << 63


class DecodeError(ValueError):
    """Says that a message does not have the shape that its dataclass declares."""


def encode(value: Any) -> Any:
    """Return the JSON value of a dataclass; tuples become lists, enums their text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    return value


def decode(kind: type[T], value: object, where: str = "message") -> T:
    """Build `kind` from a JSON value; raises DecodeError naming the field that is wrong."""
    return typing.cast(T, _decode(kind, value, where))


def _decode(kind: Any, value: object, where: str) -> object:
    if dataclasses.is_dataclass(kind):
        return _decode_dataclass(typing.cast(type, kind), value, where)
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return _decode_union(args, value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise DecodeError(f"{where} must be a list")
        return tuple(_decode(args[0], item, f"{where}[{i}]") for i, item in enumerate(value))
    if origin in (dict, Mapping):
        if not isinstance(value, dict):
            raise DecodeError(f"{where} must be an object")
        return {str(k): _decode(args[1], v, f"{where}.{k}") for k, v in value.items()}
    return _decode_scalar(kind, value, where)


def _decode_union(args: tuple[Any, ...], value: object, where: str) -> object:
    if value is None and type(None) in args:
        return None
    kinds = [kind for kind in args if kind is not type(None)]
    if len(kinds) == 1:
        return _decode(kinds[0], value, where)
    for kind in kinds:
        if type(value) is kind:
            return _decode(kind, value, where)
    raise DecodeError(f"{where} must be one of {', '.join(k.__name__ for k in kinds)}")


def _decode_scalar(kind: Any, value: object, where: str) -> object:
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        try:
            return kind(str(value))
        except ValueError as error:
            raise DecodeError(f"{where}: {error}") from None
    if type(value) is int and kind in (int, float) and not -MOST <= value < MOST:
        raise DecodeError(f"{where} is beyond 64 bits")
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise DecodeError(f"{where} must be {kind.__name__}, not {type(value).__name__}")
    return value


def _decode_dataclass(kind: type, value: object, where: str) -> object:
    if not isinstance(value, dict):
        raise DecodeError(f"{where} must be an object")
    fields = {f.name: f for f in dataclasses.fields(kind)}
    if unknown := sorted(set(value) - set(fields)):
        raise DecodeError(f"{where} has unknown fields: {', '.join(unknown)}")
    missing = [n for n, f in fields.items() if n not in value and _is_required(f)]
    if missing:
        raise DecodeError(f"{where} lacks fields: {', '.join(missing)}")
    hints = _hints(kind)
    values = {name: _decode(hints[name], item, f"{where}.{name}") for name, item in value.items()}
    try:
        return kind(**values)
    except ValueError as error:
        raise DecodeError(f"{where}: {error}") from None


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)
