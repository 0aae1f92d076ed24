"""The digest of a stage's code: what is a change of meaning, and what is only a change of words or of places."""

import ast
import shutil
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from pipeline import code
from pipeline.running import meaning
from pipeline.running.meaning import Meaning
from tests.support.projects import ROOT
from tests.support.refusals import refused

SOURCES = sorted(path for package in code.PACKAGES for path in (ROOT / package).rglob("*.py"))


@pytest.fixture
def described(tmp_path, monkeypatch):
    """The description of the stage `work`, whose script has the given text, beside other modules."""
    monkeypatch.setattr(code, "ROOT", tmp_path)

    def of(text: str, **modules: str) -> str:
        shutil.rmtree(tmp_path / "pipeline", ignore_errors=True)
        for name, content in {"work": f"{text}\n{SCRIPT}", **modules}.items():
            path = (tmp_path / "pipeline").joinpath(*name.split("__")).with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return code.described("work")

    return of


FALSY = (
    "x = 0",
    "x = False",
    "x = ''",
    "x = b''",
    "x = None",
    "x = ()",
    "x = []",
    "x = {}",
    "x = 0.0",
    "x = ...",
    "x: int",
)
SCRIPT = 'if __name__ == "__main__":\n    stage.script(main, "work")\n'
ONE = "one = 'a module'"


@pytest.mark.parametrize(
    "same",
    [
        ("x = 1", "# why\nx = (\n    1\n)"),
        ('"""What."""\n\n\ndef f():\n    """Why."""\n    return 1', "def f():\n    return 1"),
        ("f(a, b)", "f(\n    a,\n    b,\n)"),
        ("raise E('a')", "raise E(f'b {c:,} {len(d)}' + ', '.join(sorted(e)))"),
        ("print('a')", "print(f'b {c.d}', file=sys.stderr, flush=True)"),
        ("say('a')", "say('b')"),
        ("warnings.warn('a', stacklevel=2)", "warnings.warn('b')"),
        ("require(a > 1, 'a', a, 'more')", "require(a > 1, 'a', a, 'less')"),
        ("def f():\n    what = 'a'\n    raise E(what)", "def f():\n    what = f'b {len(c)}'\n    raise E(what)"),
        ("import pipeline.one as a\na.f()", "from pipeline import one\none.f()", "from pipeline import two as b\nb.f()"),
        ("from pipeline.one import f", "from pipeline.two import f", "from pipeline.sub.three import f"),
        ("from pipeline.one import f\nfrom pipeline import four", "from pipeline import four\nfrom pipeline.one import f"),
        ("x = 'pipeline.one'", "x = 'pipeline.two'", "x = 'pipeline.sub.*'"),
    ],
)
def test_what_is_the_same_code(described, same):
    modules = {"one": ONE, "two": ONE, "sub__three": ONE, "four": "four = 4"}
    assert len({described(text, **modules) for text in same}) == 1


@pytest.mark.parametrize(
    "different",
    [
        ("x = 1", "x = 2", "x = 1.0", "x = True", "x = '1'", "x = b'1'"),
        FALSY,
        ("def f(): return", "def f(): return None", "def f(): return ()"),
        ("x = f(a)", "x = f(*a)", "x = f(**a)"),
        ("x = a[:b]", "x = a[b:]", "x = a[::b]", "x = a[b]"),
        ("def f(a, b): pass", "def f(b, a): pass", "def f(a, *, b): pass", "def f(a, b=None): pass"),
        ("x = {**a, b: c}", "x = {b: c, **a}"),
        ("raise E('a')", "raise F('a')", "raise E('a') from e", "raise E('a') from None", "raise E(f(a))", "raise E(g(a))"),
        ("raise SystemExit(1)", "raise SystemExit(2)"),
        ("if a:\n    raise E('a')", "if b:\n    raise E('a')", "if not a:\n    raise E('a')", "raise E('a')"),
        (
            "say(f'{a}')",
            "say(f'{set_aside(a)}')",
            "say(f'{(a := 1)}')",
            "say(f'{[a for a in b if f(a)]}')",
            "say(a.pop())",
            "say(a.replace(b))",
        ),
        ("print('a', file=out)", "print('b', file=out)", "print('a', file=sys.stderr)"),
        ("x = say('a')", "x = say('b')"),
        ("study.tell('a')", "study.tell('b')"),
        ("require(a > 1, 'a', a, 'more')", "require(a > 2, 'a', a, 'more')", "require(a > 1, 'a', f(a), 'more')"),
        ("def f():\n    w = 'a'\n    raise E(w)\n    return w", "def f():\n    w = 'b'\n    raise E(w)\n    return w"),
        ("w = 'a'\nraise E(w)", "w = 'b'\nraise E(w)"),  # another module may import it
        ("def f():\n    w = g()\n    raise E(w)", "def f():\n    w = h()\n    raise E(w)"),
        ("from pipeline.one import f", "from pipeline.one import g", "from pipeline.one import f as g"),
        ("from pipeline import one, two\none.f(two)", "from pipeline import one, two\ntwo.f(one)"),
        ("from pipeline.one import f", "from pipeline.four import f"),
        ("from pipeline import one as f, four as g\nf.h(g)", "from pipeline import one as f, four as g\ng.h(f)"),
        ("from pipeline import one\none.f()\ndef g(one): one.f()", "from pipeline import one\none.f()\ndef g(a): one.f()"),
        ("from pipeline import like_four, like_one as x\nx.f()", "from pipeline import like_four as x, like_one\nx.f()"),
        ("import sentencepiece", "import sacrebleu", "import sacremoses", "import numpy", "def f(): import torch"),
    ],
)
def test_what_is_other_code(described, different):
    modules = {"one": ONE, "two": "two = 2", "four": "four = 4"}
    modules |= {"like_four": "from pipeline.four import x", "like_one": "from pipeline.one import x"}
    assert len({described(text, **modules) for text in different}) == len(different)


def test_modules_that_import_each_other_have_digests(described):
    """`a` and `b` differ only in what the module that they import imports."""
    modules = {"a": "import pipeline.c as x", "b": "import pipeline.d as x", "c": "import pipeline.a as x"}
    found = {
        described("from pipeline import a, b\na.f(b)", **modules, d=f"import pipeline.{name} as x\n{more}")
        for name, more in (("b", ""), ("b", "y = 1"), ("work", "y = 1"))
    }
    assert len(found) == 3


def messages(tree: ast.Module) -> Iterator[ast.Constant]:
    """The words of the messages that the digest leaves out."""
    left_out = Meaning(tree, lambda name: ([], "")).messages
    for node in ast.walk(tree):
        if id(node) in left_out:
            yield from (each for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str))


@pytest.mark.slow
def test_a_word_of_a_message_changes_no_digest_and_any_other_constant_does():
    def digest(tree: ast.Module) -> str:
        return Meaning(ast.parse(ast.unparse(tree)), lambda name: ([], "")).own

    number = 0
    for path in SOURCES:
        tree = ast.parse(path.read_bytes())
        before = digest(tree)
        for word in messages(tree):
            word.value, number = f"{word.value} another", number + 1
        assert digest(tree) == before, path
    assert number > 700, "most messages are left out"
    tree = ast.parse((ROOT / "pipeline/average.py").read_bytes())
    before, left_out = digest(tree), {id(word) for word in messages(tree)}
    docstrings = {id(node.value) for node in ast.walk(tree) if meaning.is_docstring(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in left_out | docstrings:
            value, node.value = node.value, f"{node.value} another"
            assert digest(tree) != before, ast.unparse(node)
            node.value = value


def test_the_functions_of_the_project_that_are_listed_have_no_effect_but_messages():
    functions = [
        node for path in SOURCES for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.FunctionDef)
    ]
    for name in (*meaning.PROJECT, *meaning.SAYING):
        bodies = [node for node in functions if node.name == name and "self" not in ast.unparse(node.args)]
        assert bodies or name not in meaning.PROJECT, name
        for body in bodies:
            calls = {ast.unparse(node.func) for node in ast.walk(body) if isinstance(node, ast.Call)}
            assert not calls & {"open", "os.replace", "write_json", "write_file", "atomic"}, name


def test_a_copy_of_a_script_is_refused_unless_it_is_hidden_and_one_of_another_encoding_is_read(tmp_path, described):
    """The digest was that of the copy, so an edit of the script made nothing stale."""
    with refused("pipeline/work.py and pipeline/work_old.py are both scripts of the stage work; move one out of pipeline/"):
        described("x = 1", work_old=f"x = 2\n{SCRIPT}")
    before = described("x = 1", **{".ipynb_checkpoints__work-checkpoint": f"x = 2\n{SCRIPT}"})
    (tmp_path / "pipeline/notes.py").write_bytes(b"# caf\xe9\n")
    assert before == code.described("work") == described("x = 1")


def test_no_module_is_loaded_in_a_way_that_the_digest_does_not_see():
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_bytes())):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            assert called not in ("__import__", "runpy.run_module", "runpy.run_path", "exec", "eval"), path
    assert all((ROOT / path).is_file() for path in code.CHANGE_NO_RESULT)


TEMPLATES = "rooms/templates/page.css", "rooms/templates/page.html"


def test_the_code_of_a_stage_is_what_its_script_imports(tmp_path, described):
    modules = {
        "__init__": "",
        "one": "import transformer.package, pipeline.rooms.page",
        "two": "",
        "settings__check": "import pipeline.other",
        "other": "x = 1",
        "rooms__page": "import pipeline.settings.check",
        "extras__a__section": "x = 1",
        "extras__b__section": "x = 2",
        "extras__b__other": "x = 3",
    }
    templates = ["page.html", "page.css", ".DS_Store", "page.html~"]  # the others are of an operating system and an editor
    for name, text in {"three": "import pipeline.work", "package/__init__": "x = 1"}.items():
        (tmp_path / f"transformer/{name}.py").parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"transformer/{name}.py").write_text(text)
    script = "import pipeline.one\nfrom pipeline import two, check\nx = 'pipeline.extras.*.section'\n"
    described(f"{script}\n\ndef late():\n    from transformer.three import x", **modules)
    for name in templates:
        (tmp_path / "pipeline/rooms/templates").mkdir(exist_ok=True)
        (tmp_path / "pipeline/rooms/templates" / name).write_text("<p>")
    before = code.described("work")
    assert sorted(name for _, name in code.lines(Path("pipeline/work.py"))) == [
        "imports",
        *(f"pipeline/extras/{name}/section.py" for name in "ab"),
        *(f"pipeline/{name}" for name in ("one.py", "rooms/page.py", *TEMPLATES, "work.py")),
        *("transformer/package/__init__.py", "transformer/three.py"),
    ]
    (tmp_path / "pipeline/rooms/templates/page.html").write_text("<p> <!-- counts as bytes -->")
    assert code.changed(before, "work") == ["pipeline/rooms/templates/page.html"]
    (tmp_path / "pipeline/one.py").write_text("x =")
    with refused("pipeline/one.py, line 1: invalid syntax"):
        code.described("work")


def test_the_version_of_a_library_counts_where_it_makes_bytes(here, monkeypatch):
    before, version = code.current(), metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "9" if name == "sentencepiece" else version(name))
    stages = {stage for stage, text in code.current().items() if text != before[stage]}
    assert {"learn_bpe", "binarise", "augment", "decode", "decode_set", "back_translate"} <= stages
    assert not stages & {"train", "flops", "score", "normalise"}
    assert all(code.changed(before[stage], stage) == ["sentencepiece"] for stage in stages)


class Mover(ast.NodeTransformer):
    """Rewrites the imports of a module for modules that have moved. The local names of modules change, too."""

    def __init__(self, moved: dict[str, str]) -> None:
        self.moved, self.renamed = moved, dict[str, str]()

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.AST]:
        if not node.module or node.module.split(".")[0] not in code.PACKAGES:
            return node
        found: list[ast.AST] = []
        for alias in node.names:
            if place := self.moved.get(f"{node.module}.{alias.name}"):
                package, _, name = place.rpartition(".")
                found.append(ast.ImportFrom(package, [ast.alias(name, alias.asname or alias.name)], 0))
            else:
                found.append(ast.ImportFrom(self.moved.get(node.module, node.module), [alias], 0))
        return found[::-1]


@pytest.mark.slow
def test_a_move_of_modules_makes_no_stage_stale(tmp_path, monkeypatch):
    """Every module moves, besides those whose paths are listed, and gets another name. Only imports are rewritten."""
    before = {stage: code.described(stage) for stage in code.scripts()}
    paths = {path.relative_to(ROOT) for path in SOURCES if path.stat().st_size} - code.CHANGE_NO_RESULT
    moved = {}
    asked = {"blocks", "client", "section"}  # by which the core finds the modules of an extra
    for path in (path for path in paths if path.parts[0] == "pipeline" and path.stem not in {"__init__", *asked}):
        name = ".".join(path.with_suffix("").parts)
        moved[name] = f"pipeline.extras.{'.'.join(path.parts[1:-1] or ['top'])}.new_{path.stem}"
    for path in SOURCES:
        relative = path.relative_to(ROOT)
        name = ".".join(relative.with_suffix("").parts)
        place = tmp_path / Path(*moved.get(name, name).split(".")).with_suffix(".py")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(ast.unparse(ast.fix_missing_locations(Mover(moved).visit(ast.parse(path.read_bytes())))))
    shutil.copytree(ROOT / "pipeline/reporting/templates", tmp_path / "pipeline/extras/reporting/templates")
    monkeypatch.setattr(code, "ROOT", tmp_path)
    assert code.scripts()["train"] == Path("pipeline/extras/top/new_train.py")
    assert {stage: code.described(stage) for stage in code.scripts()} == before
