# SPDX-License-Identifier: BSD-2-Clause
"""Waiting until something is so, for long: a machine may stand still for seconds."""
import ast
import inspect
import linecache
import time

from . import lab, tap

LIMIT = 60


def wait(condition, seconds=LIMIT, pause=0.03):
    """The first true value of the condition; False when none comes, with a comment on what was waited for and what it is. Who
    does not answer yet, or not whole, is asked again, unless a process has failed meanwhile."""
    until = time.monotonic() + seconds
    while True:
        try:
            seen = condition()
            if seen:
                return seen
        except (OSError, LookupError, ValueError, TypeError, AttributeError) as e:
            seen = e
            if lab.tell_deaths():
                break
        if time.monotonic() > until:
            break
        time.sleep(pause)
    tap.comment(f"waited {seconds} s at most for {text_of(condition)}\nlast seen: {seen!r}")
    for part, value in parts_of(condition):
        tap.comment(f"  {part}: {value}")
    lab.tell_deaths()
    return False


def changes(value, times):
    """Whether a value becomes another one so many times."""
    seen = set()
    return wait(lambda: seen.add(value()) or len(seen) > times)


def body_of(condition):
    """(source, expression) of a lambda, (None, None) of any other function."""
    code = condition.__code__
    if code.co_name != "<lambda>":
        return None, None
    source = "".join(linecache.getlines(code.co_filename))
    spots = [(line, column) for line, _, column, end in code.co_positions() if line and end]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
            body = node.body
            if all((body.lineno, body.col_offset) <= spot <= (body.end_lineno, body.end_col_offset) for spot in spots):
                return source, body
    return None, None


def text_of(condition):
    source, body = body_of(condition)
    if body is None:
        return f"{condition.__name__} ({inspect.getdoc(condition) or 'line %d' % condition.__code__.co_firstlineno})"
    return " ".join(ast.get_source_segment(source, body).split())


def parts_of(condition):
    """(text, value now) of what a lambda compares."""
    source, body = body_of(condition)
    todo, names = [body] if body is not None else [], None
    while todo:
        node = todo.pop(0)
        if isinstance(node, ast.BoolOp):
            todo += node.values
        elif isinstance(node, ast.UnaryOp):
            todo.append(node.operand)
        elif isinstance(node, ast.Compare):
            todo += [node.left, *node.comparators]
        elif node is not body and not isinstance(node, ast.Constant):
            names = names or condition.__globals__ | inspect.getclosurevars(condition).nonlocals
            try:
                value = repr(eval(compile(ast.Expression(node), "wait", "eval"), names))
            except Exception as e:
                value = repr(e)
            yield " ".join(ast.get_source_segment(source, node).split()), value
