"""Compares the syntax trees of two versions of a module."""

import ast
from collections.abc import Mapping

OWN = ("pipeline", "transformer")  # the packages of this project


def same_syntax(old: bytes, new: bytes, moved: Mapping[str, str]) -> bool:
    """Return whether two versions differ only in comments, layout, docstrings and the names of renamed modules.

    `moved` maps the old name of each renamed module to its new name (`pipeline.params`: `pipeline.settings.params`).
    The order of adjacent imports from this project is ignored, because a new name may change it.
    """
    try:
        trees = ast.parse(old), ast.parse(new)
    except (SyntaxError, ValueError):
        return False
    tidy(trees[0], moved)
    tidy(trees[1], {})
    return ast.dump(trees[0]) == ast.dump(trees[1])


def tidy(node: ast.AST, moved: Mapping[str, str]) -> None:
    """Remove docstrings and other string statements. Sort and split the imports from this project."""
    for name, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            value = block(value, moved)
            setattr(node, name, value)
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                tidy(child, moved)


def block(statements: list[ast.stmt], moved: Mapping[str, str]) -> list[ast.stmt]:
    done: list[ast.stmt] = []
    names: list[tuple[str, str]] = []
    for statement in statements:
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").split(".")[0] in OWN:
            names += imported(statement, moved)
        elif not (isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str)):
            done += [*imports(names), statement]
            names = []
    return done + imports(names)


def imported(statement: ast.ImportFrom, moved: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the full new name of each imported object and the name that it is bound to, for example (a.b.load, load)."""
    names = []
    for alias in statement.names:
        full = f"{statement.module}.{alias.name}"
        old = next((name for name in (full, statement.module) if name in moved), None)
        names.append((moved[old] + full.removeprefix(old) if old else full, alias.asname or alias.name))
    return names


def imports(names: list[tuple[str, str]]) -> list[ast.stmt]:
    """The imports in alphabetical order, or as given if the order decides which object a name is bound to."""
    bound_once = len({bound for _, bound in names}) == len(names)
    parts = [(full.rpartition("."), bound) for full, bound in (sorted(names) if bound_once else names)]
    return [ast.ImportFrom(module, [ast.alias(name, bound)], 0) for (module, _, name), bound in parts]
