"""The mistakes: what a tired person could write instead, one line at a time."""

import ast
import copy
from collections.abc import Iterator

from msgspec import Struct

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_COMPUTED: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.BitOr: ast.BitAnd}
_LOGGERS = ("logger", "logging")


class Mistake(Struct, frozen=True, kw_only=True):
    """One place in a module, and what stands there instead."""

    module: str
    function: str
    line: int
    written: str
    """The line as it is written."""
    before: str
    after: str
    start: int
    end: int

    @property
    def name(self) -> str:
        """How it is called in a list, whatever its line is."""
        return f"{self.module} {self.function}: {self.written}: {self.before} → {self.after}"

    def applied(self, source: str) -> str:
        """Return the module with the mistake in it."""
        data = source.encode()
        return (data[: self.start] + self.after.encode() + data[self.end :]).decode()


def named_mistake(module: str, source: str, before: str, after: str) -> Mistake:
    """Return a mistake that is written down, or raise ValueError if its place is not there exactly once."""
    if source.count(before) != 1:
        raise ValueError(f"{module} has {source.count(before)} places with {before!r}: correct proofs/mutants/named.py")
    start = len(source[: source.index(before)].encode())
    return Mistake(
        module=module,
        function="",
        line=source[: source.index(before)].count("\n") + 1,
        written=before,
        before=before,
        after=after,
        start=start,
        end=start + len(before.encode()),
    )


def mistakes_in(module: str, source: str) -> list[Mistake]:
    """Return every mistake that can be made inside the functions of a module."""
    lines = source.split("\n")
    starts = [0]
    for line in source.encode().split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    found = []
    tree = ast.parse(source)
    left_out = _returns_of_false(tree)
    for function, node in _nodes(tree):
        for after in () if node in left_out else _instead_of(node):
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
            before = source.encode()[start:end].decode()
            found.append(
                Mistake(
                    module=module,
                    function=function,
                    line=node.lineno,
                    written=lines[node.lineno - 1].strip(),
                    before=" ".join(before.split()),
                    after=after,
                    start=start,
                    end=end,
                )
            )
    return found


def _nodes(tree: ast.AST, function: str = "") -> Iterator[tuple[str, ast.expr | ast.stmt]]:
    """Yield what stands inside functions; not their annotations, decorators, docstrings and records for the log."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{function}.{child.name}".lstrip(".")
            for statement in child.body:
                yield from _inside(statement, name if not isinstance(child, ast.ClassDef) else "", name)
        elif function:
            yield from _nodes(child, function)


def _inside(node: ast.AST, function: str, scope: str) -> Iterator[tuple[str, ast.expr | ast.stmt]]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        holder = ast.Module(body=[node], type_ignores=[])
        yield from _nodes(holder, scope)
        return
    if _is_left_alone(node):
        return
    if function and isinstance(node, ast.expr | ast.stmt):
        yield function, node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _inside(child, function, scope)


def _is_left_alone(node: ast.AST) -> bool:
    match node:
        case ast.Expr(value=ast.Constant()) | ast.JoinedStr() | ast.Raise() | ast.Assert():
            # Docstrings; what a sentence says is for people.
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name in _LOGGERS
        case _:
            return False


def _instead_of(node: ast.expr | ast.stmt) -> Iterator[str]:
    match node:
        case ast.Compare(ops=[op, *_]) if type(op) in _COMPARED:
            yield _written(node, ops=[_COMPARED[type(op)](), *node.ops[1:]])
        case ast.BoolOp(op=op):
            yield _written(node, op=ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not()):
            yield f"({ast.unparse(node.operand)})"
        case ast.BinOp(op=op) if type(op) in _COMPUTED:
            yield _written(node, op=_COMPUTED[type(op)]())
        case ast.Constant(value=bool(value)):
            yield str(not value)
        case ast.Constant(value=int(value)):
            yield str(value + 1)
        case ast.Return(value=ast.expr() as value) if not _is_none(value):
            yield "return None"
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield "pass"
        case ast.IfExp():
            yield _written(node, test=ast.UnaryOp(op=ast.Not(), operand=node.test))
        case _:
            return


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _returns_of_false(tree: ast.AST) -> set[ast.AST]:
    """Return where None would be as good as False or 0, and only mypy would notice it."""
    return {
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        and isinstance(function.returns, ast.Name)
        and function.returns.id in ("bool", "int")
        for node in ast.walk(function)
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Constant) and not node.value.value
    }


def _written(node: ast.expr, **changes: object) -> str:
    other = copy.copy(node)
    for name, value in changes.items():
        setattr(other, name, value)
    return f"({ast.unparse(ast.fix_missing_locations(other))})"
