"""Write params.schema.json and studies.schema.json, with which editors complete and check params.yaml and studies.yaml.

    python -m pipeline.commands.schema

The schemas are made from the classes of the blocks (pipeline/settings/blocks.py). The comments of params.yaml describe the
settings. The check knows more than a schema can say: that names exist and that settings fit each other.
"""

import argparse
import json
import math
import re
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pipeline.running import stage
from pipeline.settings.blocks import Params, Study
from pipeline.settings.params import Name, text_of
from transformer.config.reading import Differences, Limits, Pattern, is_settings, optional, settings_of
from transformer.files import write_file

FILES: dict[str, Any] = {"params.schema.json": Params, "studies.schema.json": dict[Name, Study]}  # type: ignore[valid-type]
TYPES = {int: "integer", float: "number", bool: "boolean", str: "string"}
BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


class Schema:
    """Makes a JSON schema of an annotation. `definitions` has that of each class, by its name."""

    def __init__(self, comments: dict[tuple[str, ...], str]) -> None:
        self.comments = comments
        keys = [path[-1] for path in comments]
        self.by_key = {path[-1]: said for path, said in comments.items() if keys.count(path[-1]) == 1}
        self.definitions: dict[str, Any] = {}

    def of(self, kind: Any, path: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the schema of a value at `path` in params.yaml, which is the place of its comment."""
        origin, arguments = get_origin(kind), get_args(kind)
        if kind is Any:
            return {}
        if inner := optional(kind):
            return {"anyOf": [self.of(inner, path), {"type": "null"}]}
        if origin is Annotated:
            return self.of(arguments[0], path) | rule(arguments[1])
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin is dict:
            names = {"propertyNames": rule(get_args(arguments[0])[1])} if get_args(arguments[0]) else {}
            return {"type": "object", "additionalProperties": self.of(arguments[1], path)} | names
        if origin is tuple:
            return self.list_of(arguments, path)
        if origin is Differences:
            return self.mapping(kind, ("base", *path[-1:]))
        if not is_settings(kind):
            return {"type": TYPES[kind]}
        if kind.__name__ not in self.definitions:
            self.definitions[kind.__name__] = {}  # a class can contain itself
            self.definitions[kind.__name__] = self.mapping(kind, path)
        return {"$ref": f"#/definitions/{kind.__name__}"}

    def list_of(self, arguments: tuple[Any, ...], path: tuple[str, ...]) -> dict[str, Any]:
        items = self.of(arguments[0], path)
        if arguments[-1] is not Ellipsis:
            return {"type": "array", "items": items, "minItems": len(arguments), "maxItems": len(arguments)}
        several = {"type": "array", "items": items}
        return several if arguments[0] in TYPES else {"anyOf": [items, several]}

    def mapping(self, kind: Any, path: tuple[str, ...]) -> dict[str, Any]:
        properties, required = {}, []
        for key, (of, needed) in settings_of(kind, {"decoder": "any"}).items():  # no name: the settings of all decoders
            said = self.comments.get((*path, key)) or self.by_key.get(key)
            properties[key] = self.of(of, (*path, key)) | ({"description": said} if said else {})
            required += [key] if needed else []
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def rule(of: Any) -> dict[str, Any]:
    """Return what an annotation adds to the schema of its type. A function that refuses addresses adds nothing."""
    if isinstance(of, Limits):
        return {name: getattr(of, key) for key, name in BOUNDS.items() if math.isfinite(getattr(of, key))}
    if isinstance(of, Pattern):
        return {"pattern": f"^(?:{of.regex})$"}
    return {}


def comments(text: str) -> dict[tuple[str, ...], str]:
    """Return the comment, which may be empty, at the end of each line of params.yaml, by the path of its key."""
    found, path = {}, [""]
    for line in text.splitlines():
        if match := re.match(r"( *)(\w+):.*?(?:\s#\s(.*))?$", line):
            path[len(match[1]) // 2 :] = [match[2]]
            found[tuple(path)] = (match[3] or "").strip()
    return found


def schema(kind: Any, text: str) -> str:
    """Return the file of the schema of `kind`, one line for each class, given the text of params.yaml."""
    made = Schema({path: said for path, said in comments(text).items() if path[0] in ("base", "machine")})
    top = {"$schema": "http://json-schema.org/draft-07/schema#", **made.of(kind)}
    lines = [f"{json.dumps(name)}: {json.dumps(of)}" for name, of in sorted(made.definitions.items())]
    return json.dumps(top)[:-1] + ', "definitions": {\n' + ",\n".join(lines) + "\n}}\n"


def main(_: argparse.Namespace) -> None:
    for name, kind in FILES.items():
        write_file(Path(name), schema(kind, text_of()))


if __name__ == "__main__":
    stage.run(main, stage.parser("schema", __doc__), checked=False)
