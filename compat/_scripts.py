"""Run a test file that is a script, the way upstream runs it, and record each test.

For the suites of dill and of its relatives.  Their tests pickle what is in ``__main__``, and end with a block that
calls them in order:

    if __name__ == '__main__':                 if __name__ == '__main__':
        test_simple()                   -->        with _compat_test('test_check.py::test_simple()'):
        test_recurse()                                 test_simple()
                                                   with _compat_test('test_check.py::test_recurse()'):
                                                       test_recurse()

Each call in that block is one test; it is wrapped, so that a failure is recorded and the next test still runs.
Everything else stays as it is: the file becomes the module ``__main__``, before dill is imported because dill keeps a
reference to it.  The wrapper's name is put among the builtins, not into ``__main__``, whose contents dill's tests
pickle and clear.  An error outside the tests fails the file as a whole.
"""

from __future__ import annotations

import ast
import builtins
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from compat._record import FAILED, PASSED, Recorder

_WRAPPER = "_compat_test"
_keep_alive: list[ModuleType] = []


def run_script(unit: str, put_in_place: Callable[[], None], tests: frozenset[str], recorder: Recorder) -> int:
    """Run one test file.

    Args:
        unit: the file's name, in the working directory.
        put_in_place: accelerates the library as the mode says; called when ``__main__`` is the script's.
        tests: the ids to run; empty for all.
        recorder: where the outcomes go.

    Returns:
        The exit status: 1 if there was an error outside the tests.
    """
    path = Path(unit).resolve()
    main = _become_main(path)
    put_in_place()
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    for number, statement in enumerate(tree.body):
        if _is_main_block(statement):
            tree.body[number] = ast.fix_missing_locations(Wrap(unit, tests).visit(statement))

    @contextmanager
    def wrapper(test: str) -> Iterator[None]:
        try:
            yield
        except (Exception, SystemExit):  # test_session ends with sys.exit() where its own child has failed
            recorder.record(test, FAILED, traceback.format_exc())
        else:
            recorder.record(test, PASSED)

    setattr(builtins, _WRAPPER, wrapper)
    code = compile(tree, str(path), "exec", dont_inherit=True)
    try:
        exec(code, main.__dict__)
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def _become_main(path: Path) -> ModuleType:
    """Make a new ``__main__`` for a script, as ``python path`` would."""
    _keep_alive.append(sys.modules["__main__"])
    main = ModuleType("__main__")
    main.__file__ = str(path)
    main.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = main
    sys.argv = [str(path)]
    return main


def _is_main_block(statement: ast.stmt) -> bool:
    """Recognise ``if __name__ == '__main__':``."""
    return isinstance(statement, ast.If) and ast.unparse(statement.test) == "__name__ == '__main__'"


class Wrap(ast.NodeTransformer):
    """Wrap the calls of tests in the main block, and leave out those that are not asked for.

    Args:
        unit: the file's name, for the ids.
        tests: the ids to run; empty for all.
    """

    def __init__(self, unit: str, tests: frozenset[str]) -> None:
        self._unit = unit
        self._tests = tests
        self._seen: dict[str, int] = {}

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """Wrap ``test_x(...)``."""
        test = self._test_id(node.value)
        if test is None:
            return node
        if self._tests and test not in self._tests:
            return ast.copy_location(ast.Pass(), node)
        return self._wrapped(node, test)

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        """Wrap ``name = test_x(...)``; it is never left out, because later tests need the name."""
        test = self._test_id(node.value)
        return node if test is None else self._wrapped(node, test)

    def _test_id(self, value: ast.expr) -> str | None:
        """Give the id of a test's call, numbered if the same call stands there again; None for anything else."""
        is_test = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id.startswith("test_")
        if not is_test:
            return None
        call = ast.unparse(value)
        self._seen[call] = self._seen.get(call, 0) + 1
        number = f"#{self._seen[call]}" if self._seen[call] > 1 else ""
        return f"{self._unit}::{call}{number}"

    def _wrapped(self, node: ast.stmt, test: str) -> ast.stmt:
        call = ast.Call(func=ast.Name(id=_WRAPPER, ctx=ast.Load()), args=[ast.Constant(test)], keywords=[])
        return ast.copy_location(ast.With(items=[ast.withitem(context_expr=call)], body=[node]), node)
