"""The hook's own source with a fault line drawn through it: every function it defines and every call it makes may fail.

The modules of the package are compiled from their source with additions: at the entry and at each end of a function,
around the callee of each call inside one, and before each import inside one, this module is asked whether the point
fails now. Nothing is listed by hand, so a function written tomorrow is injected tomorrow.
"""

from __future__ import annotations

import ast
import errno
import importlib.abc
import importlib.util
import mmap
import os
import sys
from typing import Any, Callable, Dict, List, NamedTuple, Optional

PACKAGE = "datawait"
MOST_POINTS = 8192


class Point(NamedTuple):
    """One place that can fail."""

    kind: str  # entry, end, call or import
    function: str  # module.qualname, locals as outer.inner
    what: str  # the callee as written, or what is imported; "" for an entry, "end" for an end
    line: int

    def __str__(self) -> str:
        return self.function + (" -> " + self.what if self.what else "")


points: List[Point] = []


ours = object()


class Faults:
    """Which point fails, when, and how. Counts are per process: a worker has its own first call."""

    def __init__(self) -> None:
        # Shared by forks: [point * 2 + role] = 1 reached, 2 entered from outside the hook, 4 × calls up to three.
        self.reached = memoryview(mmap.mmap(-1, MOST_POINTS * 2)).cast("B")
        self.raised = memoryview(mmap.mmap(-1, 4096))  # [slot of the case]: the fault did happen, in whatever process
        self.slot = 0
        self.recording = self.asking = False
        self.folders = ("",)
        self.target = -1
        self.role = 0
        self.nth = 1
        self.once = False  # or from the nth call on
        self.calls = 0
        self.seen: Dict[int, int] = {}  # while recording: calls of this process, up to three
        self.pid = 0  # process of the script, 0 in none; any other is one that it made
        self.error: Callable[[], BaseException] = RuntimeError
        self.also: Optional[int] = None  # a second point, failing always: the faults of the failure path itself
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self.calls = 0
        self.seen = {}

    def entry(self, number: int) -> None:
        """Fails only where one of ours called: a function that the script, PyTorch or the interpreter calls has
        nobody of ours around it, and its body is covered by the calls it makes."""
        if (self.recording or number == self.target or number == self.also) and self._called_due(number):
            self._fail()

    def end(self, number: int, value: Any = None) -> Any:
        """The same, when all is done."""
        if (self.recording or number == self.target or number == self.also) and self._called_due(number):
            self._fail()
        return value

    def _called_due(self, number: int) -> bool:
        if self.asking:
            return False
        self.asking = True  # asking for a frame is an audited event, and the audit hook is a function of the hook
        try:
            return self.due(number, sys._getframe(2).f_back)
        finally:
            self.asking = False

    def before_import(self, number: int) -> None:
        if self.due(number):
            self._fail()

    def at(self, number: int, callee: Any) -> Any:
        if not (self.recording or number == self.target or number == self.also):
            return callee
        return self._fail if self.due(number) else callee

    def _fail(self, *args: Any, **kwargs: Any) -> Any:
        self.raised[self.slot] = 1
        raise self.error()

    def due(self, number: int, caller: Any = ours) -> bool:
        if self.pid == 0:  # between the fork of a case and its beginning
            return False
        if caller is not ours and (caller is None or not caller.f_code.co_filename.startswith(self.folders)):
            if self.recording:
                self.reached[number * 2 + self._role()] |= 2
            return False
        if self.recording:
            place = number * 2 + self._role()
            self.seen[place] = times = min(self.seen.get(place, 0) + 1, 3)
            self.reached[place] = max(self.reached[place] & ~2, times << 2 | 1) | self.reached[place] & 2
        if number == self.also:
            return True
        if number != self.target or self._role() != self.role:
            return False
        self.calls += 1
        return self.calls == self.nth if self.once else self.calls >= self.nth

    def _role(self) -> int:
        return int(os.getpid() != self.pid)


faults = Faults()


def _of_the_system(number: int) -> Callable[[], BaseException]:
    return lambda: OSError(number, "injected: " + os.strerror(number))


ERRORS: Dict[str, Callable[[], BaseException]] = {
    "error": lambda: RuntimeError("injected"),
    "memory": lambda: MemoryError("injected"),
    "recursion": lambda: RecursionError("injected"),
    **{name: _of_the_system(getattr(errno, name)) for name in ("ENOSPC", "EROFS", "ENOENT", "EACCES")},
}


class _Draw(ast.NodeTransformer):
    def __init__(self, module: str) -> None:
        self.names = [module]
        self.inside = 0
        self.ends: List[Optional[int]] = []  # of the functions around: the point of their ends, None of a generator

    def _point(self, kind: str, what: str, line: int) -> ast.Constant:
        points.append(Point(kind, ".".join(self.names), what, line))
        return ast.Constant(len(points) - 1)

    def _ask(self, how: str, *args: ast.expr) -> ast.Call:
        attribute = ast.Attribute(ast.Name("__faults__", ast.Load()), how, ast.Load())
        return ast.Call(attribute, list(args), [])

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        self.names.append(node.name)
        inside, self.inside = self.inside, 0
        self.generic_visit(node)
        self.inside = inside
        self.names.pop()
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.decorator_list = [self.visit(one) for one in node.decorator_list]
        self.names.append(node.name)
        entry = ast.Expr(self._ask("entry", self._point("entry", "", node.lineno)))
        self.ends.append(None if _generates(node) else self._point("end", "end", node.lineno).value)
        self.inside += 1
        documented = bool(ast.get_docstring(node))
        body: List[Any] = []
        for one in node.body:
            drawn = self.visit(one)
            body.extend(drawn if isinstance(drawn, list) else [drawn])
        self.inside -= 1
        self.names.pop()
        end = self.ends.pop()
        ended = [] if end is None else [ast.Expr(self._ask("end", ast.Constant(end)))]
        node.body = body[:documented] + [entry] + body[documented:] + ended
        return node

    def visit_Return(self, node: ast.Return) -> Any:
        self.generic_visit(node)
        if self.ends[-1] is not None:
            node.value = self._ask("end", ast.Constant(self.ends[-1]), node.value or ast.Constant(None))
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        self.names.append("<lambda>")
        entry = self._ask("entry", self._point("entry", "", node.lineno))
        self.inside += 1
        node.body = ast.BoolOp(ast.Or(), [entry, self.visit(node.body)])
        self.inside -= 1
        self.names.pop()
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        what = ast.get_source_segment(self.source, node.func) or "?"
        line = node.lineno
        self.generic_visit(node)
        if self.inside and what != "super":  # super() looks for its caller's class in the compiled function
            node.func = self._ask("at", self._point("call", " ".join(what.split()), line), node.func)
        return node

    def _imported(self, node: Any) -> Any:
        if not self.inside:
            return node
        what = "import %s%s" % (getattr(node, "module", None) or "", "/".join(name.name for name in node.names))
        return [ast.Expr(self._ask("before_import", self._point("import", what, node.lineno))), node]

    visit_Import = visit_ImportFrom = _imported


def _generates(function: ast.AST) -> bool:
    inner = [node for node in ast.iter_child_nodes(function) if not isinstance(node, (ast.FunctionDef, ast.Lambda))]
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) or _generates(node) for node in inner)


class _Loader(importlib.abc.SourceLoader):
    def __init__(self, path: str) -> None:
        self.path = path

    def get_filename(self, fullname: str) -> str:
        return self.path

    def get_data(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:  # type: ignore[override]
        text = data.decode()
        name = os.path.splitext(os.path.basename(path))[0]
        draw = _Draw(PACKAGE if name == "__init__" else name)
        draw.source = text  # type: ignore[attr-defined]
        return compile(ast.fix_missing_locations(draw.visit(ast.parse(text))), path, "exec")

    def exec_module(self, module: Any) -> None:
        module.__faults__ = faults
        super().exec_module(module)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, folder: str) -> None:
        self.folder = folder

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        if fullname != PACKAGE and not fullname.startswith(PACKAGE + "."):
            return None
        rest = fullname.split(".")[1:]
        file = os.path.join(self.folder, *(rest or ["__init__"])) + ".py"
        where = [self.folder] if not rest else None
        if not os.path.exists(file):
            return None
        return importlib.util.spec_from_file_location(
            fullname, file, loader=_Loader(file), submodule_search_locations=where
        )


def sitecustomize(path: str) -> Any:
    """The code that attaches the hook, with points."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    draw = _Draw("sitecustomize")
    draw.source = text  # type: ignore[attr-defined]
    return compile(ast.fix_missing_locations(draw.visit(ast.parse(text))), path, "exec")


def install(folder: str) -> None:
    """From here on the package is imported from folder, with its points; imports all of it."""
    faults.folders = (folder + os.sep, os.path.join(os.path.dirname(folder), "attach") + os.sep)
    sys.meta_path.insert(0, _Finder(folder))
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            importlib.import_module(PACKAGE + ("" if name == "__init__.py" else "." + name[:-3]))
    assert len(points) < MOST_POINTS
