"""Strict reading of settings: a mapping, as YAML or JSON gives it, becomes a frozen dataclass or is refused.

The annotations of a dataclass say which keys and values are valid, so one class is the check, the documentation and the
JSON schema of a block. `read` is for params.yaml. It refuses unknown keys, and its only default is None for an optional
setting, so params.yaml alone determines what runs. `read_saved` is for the files of trained models, which earlier code
may have written.
"""

import contextlib
import dataclasses
import difflib
import functools
import re
import reprlib
import sys
import types
import typing
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from typing import Annotated, Any, Generic, Literal, TypeGuard, TypeVar, get_args, get_origin

SHORT = reprlib.Repr()
SHORT.maxlevel, SHORT.maxstring, SHORT.maxother = 2, 120, 60

Settings = TypeVar("Settings", bound=Hashable)


class UserError(ValueError):
    """One or several errors that the user can correct. Each is a line and, where possible, says how."""

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))


@dataclasses.dataclass(frozen=True)
class Limits:
    """The numbers that a setting may have, as an annotation of its type: `Annotated[int, Limits(ge=1)]`."""

    ge: float = -inf
    gt: float = -inf
    le: float = inf
    lt: float = inf

    def __call__(self, value: float) -> bool:
        return self.ge <= value <= self.le and self.gt < value < self.lt

    def __str__(self) -> str:
        above = self.gt > -inf
        low = f" above {self.gt}" if above else f" from {self.ge}" if self.ge > -inf else ""
        up = " up to" if above else " to"
        high = f"{up} {self.le}" if self.le < inf else f"{up} below {self.lt}" if self.lt < inf else ""
        return f"{low}{high}"


@dataclasses.dataclass(frozen=True)
class Pattern:
    """The texts that a setting may have, as an annotation: a regular expression for the whole text, and it in words."""

    regex: str
    words: str

    def __call__(self, value: str) -> bool:
        return re.fullmatch(self.regex, value) is not None

    def __str__(self) -> str:
        return self.words


class Differences(Generic[Settings]):
    """The annotation of a mapping with some of the settings of a dataclass."""


LARGEST = 2**31 - 1  # the largest whole number that torch, sacreBLEU and sentencepiece all accept
Count = Annotated[int, Limits(gt=0, le=LARGEST)]
Whole = Annotated[int, Limits(ge=0, le=LARGEST)]
Positive = Annotated[float, Limits(gt=0, le=LARGEST)]
NotNegative = Annotated[float, Limits(ge=0)]
Share = Annotated[float, Limits(ge=0, lt=1)]
Threads = Annotated[int, Limits(ge=1, le=1024)]
Seed = Whole


@contextlib.contextmanager
def placed(where: str, separator: str = ".") -> Iterator[None]:
    """Begin each line of a UserError of the block with the place `where`."""
    try:
        yield
    except UserError as error:
        raise UserError(*(f"{where}{separator}{line}" for line in error.args)) from None


def together(checks: Iterable[Callable[[], Any]], faults: Sequence[str] = ()) -> list[Any]:
    """The results of all `checks`. If some raise UserError, one has the lines of all and then the `faults`, each once."""
    results: list[Any] = []
    lines: dict[Any, None] = {}
    for check in checks:
        try:
            results.append(check())
        except UserError as error:
            lines |= dict.fromkeys(error.args)
    if lines := lines | dict.fromkeys(faults):
        raise UserError(*lines)
    return results


def read(cls: type[Settings], values: Any, where: str) -> Settings:
    """The frozen dataclass `cls` with these values.

    `where` is the place that the values came from (`params.yaml: base.model`), for the error messages. A missing optional
    key is None. Raises UserError, a line for each other missing key, unknown key, wrong type, or value that `cls` refuses.
    """
    given = read_keys(cls, values, where)
    with placed(where):
        return cls(**{key: given.get(key) for key in hints(cls)})


def read_keys(kind: Any, values: Any, where: str) -> dict[str, Any]:
    """The converted values of a mapping whose keys are the settings of `kind`. Raises UserError as `read` does."""
    if not isinstance(values, Mapping):
        known = "" if get_origin(kind) is Differences else ", ".join(hints(kind)) + ", ..." * hasattr(kind, "further")
        hint = f"its keys are {known}" if known else "{} is expected if nothing differs"
        raise UserError(f"{where}: {shown(values)} is not a mapping; {hint}")
    kinds = settings_of(kind, values)
    wrong = [key for key in values if key not in kinds]
    guessed = [near for key in wrong for near in nearest(key, list(kinds))]  # not reported as missing, too
    missing = [key for key, (of, required) in kinds.items() if required and key not in [*values, *guessed]]
    checks = [partial(convert, kinds[key][0], values[key], at(where, key)) for key in values if key in kinds]
    faults = [unknown(key, list(kinds), where) for key in wrong]
    faults += [f"{at(where, key)} is missing; {describe(kinds[key][0])} is expected" for key in missing]
    return dict(zip(values, together(checks, faults)))  # without faults, there is a check for each key


def read_saved(cls: type[Settings], values: Any, where: str) -> Settings:
    """The frozen dataclass `cls` with the values that a trained model's file holds.

    `cls.ABSENT`, if any, maps each setting that was added after the first models were trained to the value that they used.
    It supplies missing keys. Raises UserError as `read` does; an unknown key means that newer code made the file.
    """
    if isinstance(values, Mapping):
        if unknown_keys := [key for key in values if key not in hints(cls)]:
            raise UserError(
                f"{where}: unknown settings {shown(unknown_keys)}: the model was made by newer code than this; "
                f"update the code, or use a model whose settings are {', '.join(hints(cls))}"
            )
        values = {**getattr(cls, "ABSENT", {}), **values}
    return read(cls, values, where)


@functools.cache
def hints(cls: type) -> dict[str, Any]:
    """The annotation of each setting in `cls`."""
    of = typing.get_type_hints(cls, include_extras=True)
    return {field.name: of[field.name] for field in dataclasses.fields(cls)}


def settings_of(kind: Any, values: Mapping[str, Any]) -> dict[str, tuple[Any, bool]]:
    """The annotation of each key that a mapping of this kind can have, and whether the key must be there.

    A class may have a method `further(values)`, which gives more keys, all optional. They can depend on the `values`.
    """
    if not hasattr(kind, "further"):
        return own_settings(kind)
    return own_settings(kind) | {key: (of, False) for key, of in kind.further(values).items()}


@functools.cache
def own_settings(kind: Any) -> dict[str, tuple[Any, bool]]:
    if get_origin(kind) is Differences:
        return {key: (of, False) for key, of in hints(*get_args(kind)).items()}
    return {key: (of, not optional(of)) for key, of in hints(kind).items()}


def shown(value: Any) -> str:
    """`value` on one short line for a message; shortened, since YAML aliases can make a value of any size."""
    try:
        return SHORT.repr(value)
    except ValueError:  # Python converts no integer of more than 4,300 digits to text
        return "a number of thousands of digits"


def nearest(name: Any, valid: Sequence[str]) -> list[str]:
    """The most similar of the `valid` names, if one is similar."""
    return difflib.get_close_matches(name, valid, n=1) if isinstance(name, str) else []


def similar(name: Any, valid: Sequence[str]) -> str:
    """What to name instead: the most similar of the `valid` names as a question, or else all of them."""
    near = nearest(name, valid)
    return f"did you mean {near[0]!r}?" if near else f"valid names are {', '.join(valid) or 'none'}"


def unknown(key: Any, valid: Sequence[str], where: str) -> str:
    """The message for a key that is not in `valid`."""
    name = key if isinstance(key, str) and key.isprintable() and len(key) < 80 else shown(key)
    hint = similar(key, valid).replace("valid names", "valid keys")
    return f"{at(where, name)}: unknown key; {hint}"


def at(where: str, key: Any) -> str:
    """The place of a key in the mapping at `where`, which may be a whole file (`params.yaml:`)."""
    return f"{where} {key}" if where.endswith(":") else f"{where}.{key}"


def require(valid: bool, key: str, value: Any, expected: str) -> None:
    """For `__post_init__`: raise UserError with the text `expected` unless `valid`."""
    if not valid:
        raise UserError(f"{key}: {shown(value)} is not possible; {expected}")


def require_valid(settings: Any) -> None:
    """For `__post_init__` of a class that is also made without `read`: check each value by its annotation."""
    cls: Any = type(settings)
    together(partial(convert, kind, getattr(settings, key), key) for key, kind in hints(cls).items())


def convert(kind: Any, value: Any, where: str, said: Any = None) -> Any:
    """`value` converted to the annotation `kind`. A bool is not a number.

    Where a list is expected, another value is read as its only entry, unless the entries are texts without a rule.

    Raises UserError, whose lines name `where`, for another value. They describe the annotation `said`, by default `kind`.
    """
    if kind is Any:
        return value
    origin, arguments, inner, mapping = taken_apart(kind)
    if inner:
        return None if value is None else convert(inner, value, where)
    if origin is Annotated:
        found, rule = convert(arguments[0], value, where, kind), arguments[1]
        with contextlib.nullcontext() if isinstance(rule, Limits | Pattern) else placed(where, ": "):  # may raise UserError
            valid = rule(found) is not False
        if not valid:
            raise UserError(f"{where}: {shown(value)} is not possible; {describe(kind)} is expected")
        return found
    if mapping:
        return mapping(kind, value, where)
    if origin is Literal and value in arguments:
        return value
    several = isinstance(value, (list, tuple))
    if origin is tuple and not several and arguments[-1] is Ellipsis and arguments[0] is not str:
        return (convert(arguments[0], value, where),)
    if origin is tuple and several:
        of = arguments[:1] * len(value) if arguments[-1] is Ellipsis else arguments
        if len(of) == len(value):
            return tuple(together(partial(convert, of[i], item, f"{where}[{i}]") for i, item in enumerate(value)))
    if origin is dict and isinstance(value, Mapping):
        return dict(together(partial(convert_item, arguments, item, where) for item in value.items()))
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is float and number and abs(value) <= sys.float_info.max:  # NaN is refused, too
        return float(value)
    if kind in (bool, int, str) and type(value) is kind:
        return value
    raise UserError(f"{where.removesuffix(':')}: {shown(value)} is not possible; {describe(said or kind)} is expected")


def convert_item(kinds: tuple[Any, Any], item: tuple[Any, Any], where: str) -> tuple[Any, Any]:
    """A key and its value, converted. The key is a name, which YAML may have read as a number or as a date."""
    key, value = item
    if not isinstance(key, str):
        written = key.isoformat() if hasattr(key, "isoformat") else shown(key)
        raise UserError(f"{where.removesuffix(':')}: YAML does not read {written} as text; put the name into quotes")
    return convert(kinds[0], key, where.removesuffix(":")), convert(kinds[1], value, at(where, key))


@functools.cache
def taken_apart(kind: Any) -> tuple[Any, tuple[Any, ...], Any, Callable[[Any, Any, str], Any] | None]:
    """The origin and the arguments of an annotation, what it is without None, and what reads a mapping of its settings."""
    origin = get_origin(kind)
    keys = origin is Differences or hasattr(kind, "further")
    return origin, get_args(kind), optional(kind), read_keys if keys else read if is_settings(kind) else None


def is_settings(kind: Any) -> TypeGuard[type]:
    """Whether the annotation `kind` is a dataclass."""
    return dataclasses.is_dataclass(kind)


def optional(kind: Any) -> Any:
    """The annotation `kind` without None if it includes None, otherwise None."""
    several = get_args(kind) if get_origin(kind) in (typing.Union, types.UnionType) else ()
    return next((one for one in several if type(None) in several and one is not type(None)), None)


def describe(kind: Any) -> str:
    """The annotation `kind` in words, for a message."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        of, rule = arguments
        return str(rule) if isinstance(rule, Pattern) else describe(of) + str(rule) * isinstance(rule, Limits)
    if origin is Literal:
        return "one of " + ", ".join(arguments)
    if inner := optional(kind):
        return f"{describe(inner)} or null"
    if origin is tuple:
        return "a list" if arguments[-1] is Ellipsis else f"a list of {len(arguments)}"
    if origin in (dict, Differences) or is_settings(kind):
        return "a mapping"
    return {int: "a whole number", float: "a number", bool: "true or false", str: "text"}[kind]
