"""The meaning of a module: its syntax tree without what cannot change a result.

Left out are comments, docstrings, layout and positions, the words of messages, and the place of the project's modules. A
message is the arguments of `raise X(...)` and of a statement that prints, if all calls in it only make text. What decides
whether it is given (conditions, the type of the exception, its cause) is not left out.
"""

import ast
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# The functions that print their arguments or raise with them, and how many first arguments are not the message: the first
# one of `require` is its condition. No output of a stage holds a message.
SAYING = {"print": 0, "say": 0, "tell": 0, "warn": 0, "warnings.warn": 0, "Progress.write": 0, "bar.write": 0, "require": 1}
STREAMS = ("sys.stderr", "sys.stdout")  # a `print` to any other file writes an output

# The arguments of these exceptions are no text: an exit status, a result.
WITH_VALUE = ("SystemExit", "StopIteration")

# These calls make text or a number of their arguments, and do nothing else: functions of Python, methods of texts, and
# functions of the project. A message with any other call counts, because the call may have an effect.
FUNCTIONS = {"ascii", "bool", "float", "getattr", "int", "isinstance", "len", "list", "max", "min", "range", "repr"}
FUNCTIONS |= {"round", "set", "sorted", "str", "sum", "tuple", "type", "zip"}
METHODS = {"as_posix", "cwd", "format", "items", "join", "keys", "partition", "removeprefix", "removesuffix", "rpartition"}
METHODS |= {"split", "splitlines", "strip", "values"}  # not `replace` and `get`: those of a path and a queue have an effect
PROJECT = {"brief", "describe", "duration", "foreign", "one_file", "pairs_in", "shortened", "shown", "similar", "size_of"}
PROJECT |= {"told", "unknown"}

EFFECTS = (ast.Await, ast.Lambda, ast.NamedExpr, ast.Yield, ast.YieldFrom)  # expressions that do not only make a value

IMPORTS = ast.Import, ast.ImportFrom
Reference = tuple[Path, str, str]  # a module, the name that is imported from it, and the name that it gets


@dataclass
class Meaning:
    """The meaning of the module `tree`.

    `own` is its digest, with equal signs for all modules of the project. `references` says which modules these are, in
    the order of the signs. The imports that stand together are in one tuple, because their order changes nothing.
    `found` gives the modules that a dotted name or pattern names, and the name within the module, if any.
    """

    tree: ast.Module
    found: Callable[[str], tuple[list[Path], str]]
    references: list[tuple[Reference, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        nodes = list(ast.walk(self.tree))
        bound = Counter(name for node in nodes for name in bound_names(node))
        imports = [node for node in nodes if isinstance(node, IMPORTS)]
        self.libraries = {name.partition(".")[0] for node in imports for name, _ in imported_names(node)}
        references = [reference for node in imports for reference in self.imported(node) or ()]
        self.modules = {as_: path for path, name, as_ in references if not name and bound[as_] == 1}
        parts = [part for node in nodes for part in self.message(node)]
        self.messages = {id(part) for part in (*parts, *texts(nodes, parts))}
        self.own = hashlib.sha256(repr(self.of(self.tree)).encode()).hexdigest()

    def imported(self, node: ast.AST) -> tuple[Reference, ...] | None:
        """The references of an import of modules of the project, or None for any other statement."""
        found = [(*self.found(name), as_) for name, as_ in imported_names(node)]
        known = bool(found) and all(paths and as_ for paths, _, as_ in found)
        return tuple((paths[0], name, as_) for paths, name, as_ in found) if known else None

    def message(self, node: ast.AST) -> list[ast.expr | ast.keyword]:
        """The arguments of a statement that are left out."""
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            call, first = node.exc, 0
            if ast.unparse(call.func) in WITH_VALUE:
                return []
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            dotted = ast.unparse(call.func)
            of, _, name = dotted.rpartition(".")
            if (first := SAYING.get(name if of in self.modules else dotted, -1)) < 0:
                return []
        else:
            return []
        files = [each.value for each in call.keywords if each.arg == "file"]
        if any(ast.unparse(file) not in STREAMS for file in files):
            return []
        parts: list[ast.expr | ast.keyword] = [*call.args[first:], *call.keywords]
        return [part for part in parts if makes_text(part)]

    def of(self, node: Any) -> Any:
        """Return a node as nested tuples, and note the modules that it names.

        Fields that are None or an empty list are left out. Python 3.12 and 3.13 added such fields, so all versions agree.
        """
        if isinstance(node, list):
            return tuple(self.of_list(node))
        if not isinstance(node, ast.AST):
            return node
        if id(node) in self.messages:
            return "message"
        if isinstance(node, ast.Name) and node.id in self.modules:
            return self.noted([(self.modules[node.id], "", "")])
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and (paths := self.found(node.value)[0]):
            return self.noted([(path, "", "") for path in paths])
        if isinstance(node, IMPORTS) and (
            named := [path for name, _ in imported_names(node) for path in self.found(name)[0]]  # as in `import a.b`
        ):
            self.noted([(path, "", "") for path in named])
        fields = [(name, self.of(getattr(node, name, None))) for name in node._fields]
        return type(node).__name__, *[each for each in fields if each[1] is not None and each[1] != ()]

    def of_list(self, nodes: list[Any]) -> Iterator[Any]:
        block: list[Reference] = []
        for node in nodes:
            if is_docstring(node) or id(node) in self.messages:
                continue
            if isinstance(node, IMPORTS) and (references := self.imported(node)) is not None:
                block += references
                continue
            if block:
                yield self.noted(block)
                block = []
            yield self.of(node)
        if block:
            yield self.noted(block)

    def noted(self, block: Iterable[Reference]) -> tuple[Any, ...]:
        """Note the modules, and return their sign. The local name of a module is not in it: it changes in a rename."""
        known = [(path, name, "" if as_ in self.modules else as_) for path, name, as_ in block]
        self.references.append(tuple(known))
        return "modules", *sorted((name, as_) for _, name, as_ in known)


def texts(nodes: list[ast.AST], messages: list[ast.expr | ast.keyword]) -> Iterator[ast.expr]:
    """Return the values of the variables in functions that are used in messages only."""
    loads = Counter(name for node in nodes for name in loaded(node))
    said = Counter(name for part in messages for node in ast.walk(part) for name in loaded(node))
    quiet = {name for name, number in said.items() if loads[name] == number}
    for function in nodes if quiet else ():
        for node in ast.walk(function) if isinstance(function, ast.FunctionDef) else ():
            if (
                isinstance(node, ast.Assign)
                and all(isinstance(each, ast.Name) and each.id in quiet for each in node.targets)
                and makes_text(node.value)
            ):
                yield node.value


def makes_text(node: ast.AST) -> bool:
    """Return whether an expression has no effect: it has none of EFFECTS, and no calls but the listed ones."""
    if isinstance(node, ast.Call):
        of = node.func
        listed = of.attr in METHODS if isinstance(of, ast.Attribute) else ast.unparse(of) in FUNCTIONS | PROJECT
    else:
        listed = not isinstance(node, EFFECTS)
    return listed and all(map(makes_text, ast.iter_child_nodes(node)))


def loaded(node: ast.AST) -> list[str]:
    return [node.id] if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else []


def imported_names(node: ast.AST) -> list[tuple[str, str]]:
    """The dotted names that a statement imports, each with the name that it gets, which is "" for `import a.b`."""
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports in this project are absolute"
        return [(f"{node.module}.{alias.name}", alias.asname or alias.name) for alias in node.names]
    return [(alias.name, alias.asname or "") for alias in node.names] if isinstance(node, ast.Import) else []


def bound_names(node: ast.AST) -> list[str]:
    """The names that a node gives a value: a variable, a parameter, a function, a class or an import."""
    if isinstance(node, ast.alias):
        return [(node.asname or node.name).partition(".")[0]]
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return node.names
    bound = getattr(node, "arg", None) or getattr(node, "name", None)
    return [bound] if isinstance(bound, str) else []


def is_docstring(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
