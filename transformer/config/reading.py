"""Strict reading of settings: a mapping, as YAML or JSON gives it, becomes a frozen dataclass or is refused.

`read` is for params.yaml. It refuses unknown keys, and its only default is None for an optional setting, so params.yaml
alone determines what runs. `read_saved` is for the files of trained models, which earlier code may have written.
"""

import dataclasses
import difflib
import reprlib
import sys
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeGuard, TypeVar, get_args, get_origin

SHORT = reprlib.Repr()
SHORT.maxlevel, SHORT.maxstring, SHORT.maxother = 2, 120, 60


class UserError(ValueError):
    """An error that the user can correct. The message is one line and, where possible, says how."""


Settings = TypeVar("Settings")


def read(cls: type[Settings], values: Any, where: str) -> Settings:
    """The frozen dataclass `cls` with these values.

    `where` is the place that the values came from (`params.yaml: base.model`), for the error message. A missing optional
    key is None. Raises UserError for any other missing key, an unknown key, a wrong type, or a value that `cls` refuses.
    """
    if not isinstance(values, Mapping):
        raise UserError(f"{where}: {shown(values)} is not a mapping; its keys are {', '.join(keys(cls))}")
    require_keys(values, keys(cls), where)
    types_of = typing.get_type_hints(cls)
    given = {}
    for key in keys(cls):
        if key in values:
            given[key] = convert(types_of[key], values[key], f"{where}.{key}")
        elif not optional(types_of[key]):
            raise UserError(f"{where}.{key} is missing; {describe(types_of[key])} is expected")
        else:
            given[key] = None
    try:
        return cls(**given)
    except UserError as error:
        raise UserError(f"{where}.{error}") from None


def read_saved(cls: type[Settings], values: Any, where: str) -> Settings:
    """The frozen dataclass `cls` with the values that a trained model's file holds.

    `cls.ABSENT`, if any, maps each setting that was added after the first models were trained to the value that they used.
    It supplies missing keys. Raises UserError as `read` does; an unknown key means that newer code made the file.
    """
    if isinstance(values, Mapping):
        unknown_keys = [key for key in values if key not in keys(cls)]
        if unknown_keys:
            raise UserError(
                f"{where}: unknown settings {shown(unknown_keys)}: the model was made by newer code than this; "
                f"update the code, or use a model whose settings are {', '.join(keys(cls))}"
            )
        values = {**getattr(cls, "ABSENT", {}), **values}
    return read(cls, values, where)


def keys(cls: type) -> list[str]:
    """The names of the settings in `cls`."""
    return [field.name for field in dataclasses.fields(cls)]


def shown(value: Any) -> str:
    """`value` on one short line for a message; shortened, since YAML aliases can make a value of any size."""
    try:
        return SHORT.repr(value)
    except ValueError:  # Python converts no integer of more than 4,300 digits to text
        return "a number of thousands of digits"


def similar(name: Any, valid: Sequence[str]) -> str:
    """A question that names the most similar of the `valid` names, or an empty text."""
    near = difflib.get_close_matches(name, valid, n=1) if isinstance(name, str) else []
    return f"did you mean {near[0]!r}? " if near else ""


def unknown(key: Any, valid: list[str], where: str) -> str:
    """The message for a key that is not in `valid`; it names the most similar valid key first."""
    hint = similar(key, valid)
    key = key if isinstance(key, str) and key.isprintable() and len(key) < 80 else shown(key)
    return f"{where}.{key}: unknown key; {hint}valid keys are {', '.join(valid)}"


def require_keys(values: Iterable, valid: list[str], where: str) -> None:
    """Raise UserError for the first unknown key."""
    for key in values:
        if key not in valid:
            raise UserError(unknown(key, valid, where))


def require(valid: bool, key: str, value: Any, expected: str) -> None:
    """For `__post_init__`: raise UserError with the text `expected` unless `valid`."""
    if not valid:
        raise UserError(f"{key}: {shown(value)} is not possible; {expected}")


def require_threads(threads: int) -> None:
    require(0 < threads <= 1024, "threads", threads, "a whole number from 1 to 1024 is expected")


def require_seed(seed: int) -> None:
    require(0 <= seed < 2**63, "seed", seed, "a whole number from 0 to 2**63 - 1 is expected")


def convert(kind: Any, value: Any, where: str) -> Any:
    """`value` converted to the type `kind`. A bool is not a number.

    Where a list of dataclasses is expected, a mapping is read as a list with one entry; likewise text in a list of texts.

    Raises UserError, which names `where`, for a value of another type.
    """
    arguments, origin = get_args(kind), get_origin(kind)
    if optional(kind):
        if value is None:
            return None
        (kind,) = [argument for argument in arguments if argument is not type(None)]
        return convert(kind, value, where)
    if is_settings(kind):
        return read(kind, value, where)
    if origin is Literal and isinstance(value, str) and value in arguments:
        return value
    if origin is tuple and is_settings(arguments[0]) and isinstance(value, Mapping):
        return (read(arguments[0], value, where),)
    if origin is tuple and arguments == (str, Ellipsis) and isinstance(value, str):
        return (value,)
    if origin is tuple and isinstance(value, (list, tuple)):
        if arguments[-1] is Ellipsis:
            return tuple(convert(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(value))
        if len(arguments) == len(value):
            return tuple(convert(k, item, f"{where}[{i}]") for i, (k, item) in enumerate(zip(arguments, value)))
    if origin is dict and isinstance(value, Mapping):
        return {convert(arguments[0], k, where): convert(arguments[1], v, f"{where}.{k}") for k, v in value.items()}
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is float and is_number and abs(value) <= sys.float_info.max:  # NaN is refused, too
        return float(value)
    if kind is int and is_number and isinstance(value, int):
        return value
    if kind in (bool, str) and isinstance(value, kind):
        return value
    raise UserError(f"{where}: {shown(value)} is of the wrong type; {describe(kind)} is expected")


def is_settings(kind: Any) -> TypeGuard[type]:
    """Whether the annotation `kind` is a dataclass."""
    return dataclasses.is_dataclass(kind)


def optional(kind: Any) -> bool:
    """Whether the annotation `kind` includes None."""
    return get_origin(kind) in (typing.Union, types.UnionType) and type(None) in get_args(kind)


def describe(kind: Any) -> str:
    """The annotation `kind` in words, for a message."""
    if get_origin(kind) is Literal:
        return "one of " + ", ".join(get_args(kind))
    if optional(kind):
        return " or ".join(describe(k) if k is not type(None) else "null" for k in get_args(kind))
    if get_origin(kind) is tuple:
        return "a list"
    if get_origin(kind) is dict or is_settings(kind):
        return "a mapping"
    return {int: "a whole number", float: "a number", bool: "true or false", str: "text"}[kind]
