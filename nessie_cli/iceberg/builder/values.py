"""Reads the members of JSON objects. An error names the member and what was expected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nessie_cli.errors import InvalidInput

Document = dict[str, Any]
INT32 = range(-(2**31), 2**31)
INT64 = range(-(2**63), 2**63)


def _member(document: Mapping[str, Any], name: str, where: str) -> Any:
    if not isinstance(document, Mapping):
        raise InvalidInput(f"{where}: must be an object")
    value = document.get(name)
    if value is None:
        raise InvalidInput(f"{where}: {name} is missing")
    return value


def text(document: Mapping[str, Any], name: str, where: str) -> str:
    """Returns a member that must be a string."""
    value = _member(document, name, where)
    if not isinstance(value, str):
        raise InvalidInput(f"{where}: {name} must be a string")
    return value


def integer(document: Mapping[str, Any], name: str, where: str, among: range = INT32) -> int:
    """Returns a member that must be an integer of 32 bits, or of another range."""
    value = _member(document, name, where)
    if isinstance(value, bool) or not isinstance(value, int) or value not in among:
        raise InvalidInput(f"{where}: {name} must be an integer of {among.stop.bit_length()} bits")
    return value


def long(document: Mapping[str, Any], name: str, where: str) -> int:
    """Returns a member that must be an integer of 64 bits."""
    return integer(document, name, where, INT64)


def boolean(document: Mapping[str, Any], name: str, where: str) -> bool:
    """Returns a member that must be true or false."""
    value = _member(document, name, where)
    if not isinstance(value, bool):
        raise InvalidInput(f"{where}: {name} must be true or false")
    return value


def object_(document: Mapping[str, Any], name: str, where: str) -> Document:
    """Returns a member that must be an object."""
    value = _member(document, name, where)
    if not isinstance(value, dict):
        raise InvalidInput(f"{where}: {name} must be an object")
    return value


def objects(document: Mapping[str, Any], name: str, where: str) -> list[Document]:
    """Returns a member that must be a list of objects."""
    value = _member(document, name, where)
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise InvalidInput(f"{where}: {name} must be a list of objects")
    return value


def integers(document: Mapping[str, Any], name: str, where: str, among: range = INT32) -> list[int]:
    """Returns a member that must be a list of integers."""
    value = _member(document, name, where)
    if not isinstance(value, list) or not all(
        isinstance(one, int) and not isinstance(one, bool) and one in among for one in value
    ):
        raise InvalidInput(f"{where}: {name} must be a list of integers")
    return value


def texts(document: Mapping[str, Any], name: str, where: str) -> list[str]:
    """Returns a member that must be a list of strings."""
    value = _member(document, name, where)
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise InvalidInput(f"{where}: {name} must be a list of strings")
    return value


def text_map(document: Mapping[str, Any], name: str, where: str) -> dict[str, str]:
    """Returns a member that must be an object whose members are strings."""
    value = object_(document, name, where)
    if not all(isinstance(one, str) for one in value.values()):
        raise InvalidInput(f"{where}: {name} must hold strings only")
    return value
