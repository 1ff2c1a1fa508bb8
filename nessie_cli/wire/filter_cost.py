"""An upper bound of the steps of one evaluation of a filter, known before it is evaluated.

The engine evaluates a filter in one call, which holds the interpreter and cannot be stopped. It
limits the iterations of an evaluation (10,000), but not the size of values: `x + x` in nested
`map`s doubles a text with each level. So the bound follows how large each value of the expression
can become: a constant has its own size, an attribute that of the record, `+` adds the sizes, and a
comprehension multiplies by the length of its list. A filter is evaluated only if its bound is
small. A process that could be killed instead would cost each listing its start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any, NamedTuple

from nessie_cli.errors import InvalidInput
from nessie_cli.wire.filter_expression import checked_expression

MOST_STEPS = 1_000_000
"""The most steps of one evaluation; they take less than 50 ms."""
_MOST_ITERATIONS = 10_000
"""The engine's own limit of an evaluation."""
_OPERATIONS, OPERATION = "operations", "operations[]"
_BYTES_PER_STEP = 64
_PATTERN_STEPS, _TEXT_PER_PATTERN_STEP = 8, 16
"""Steps to compile a state of a pattern, and the bytes of text that it matches in one."""
_PLACES_PER_STEP, _COMPARED_PER_STEP = 5, 2048
"""Places of a text at which one step looks for another text, and the bytes that it compares."""
_CLASS_STATES = 100
"""States of a class of Unicode, such as `\\pL`."""
_REPETITION = re.compile(r"\{(\d{1,4})(?:,(\d{0,4}))?\}")
_MOST_LOOPS = 3
_SLACK = 64
"""The longest text that a function makes from a number or time."""
_SCALAR_TYPES = frozenset({1, 2, 3, 4})
"""The types `bool`, `int`, `uint` and `double`, whose values do not grow."""
_TEXT_TYPES = frozenset({5, 6})
"""The types `string` and `bytes`, which have no elements."""


class Size(NamedTuple):
    """The most elements at all levels of a value, and the most bytes of its texts."""

    elements: int = 1
    bytes: int = 8

    def __add__(self, other: Size) -> Size:  # type: ignore[override]
        """The size of two values together."""
        return Size(self.elements + other.elements, self.bytes + other.bytes)

    def times(self, number: int) -> Size:
        """The size of several such values."""
        return Size(self.elements * number, self.bytes * number)

    def larger(self, other: Size) -> Size:
        """The size of either value."""
        return Size(max(self.elements, other.elements), max(self.bytes, other.bytes))

    def rounded(self) -> Size:
        """Returns the next powers of two, at least 4 elements and 256 bytes."""
        elements, bytes_ = max(self.elements, 4), max(self.bytes, 256)
        return Size(1 << (elements - 1).bit_length(), 1 << (bytes_ - 1).bit_length())

    @property
    def steps(self) -> int:
        """The steps of copying or comparing the value."""
        return self.elements + self.bytes // _BYTES_PER_STEP


class _Bound(NamedTuple):
    size: Size
    steps: int


Variables = Mapping[str, Size]


def most_steps(expression: Any, sizes: Variables) -> int:
    """Returns the most steps of a compiled filter for variables of these sizes.

    `sizes[OPERATION]` is the size of one of the operations. Raises `InvalidInput` for a filter with
    too many nested loops.
    """
    checked = checked_expression(expression)
    types = {entry.key: entry.value.primitive for entry in checked.types}
    return _Analysis(sizes, types).bound(checked.expr, {}).steps


def _pattern_size(node: Any) -> int:
    """Returns the most states of a pattern. Raises `InvalidInput` unless it is a literal."""
    if node.WhichOneof("kind") != "constant":
        raise InvalidInput("filter: the pattern of `matches` must be a text in quotes")
    pattern = node.constant.decode("utf-8", "replace")
    classes = 1 + _CLASS_STATES * ("\\p" in pattern.lower())
    repetitions = (max(1, int(most or least)) for least, most in _REPETITION.findall(pattern))
    return classes * len(pattern) * prod(repetitions)


class _Analysis:
    """Bounds the nodes of an expression. `types` has the primitive type of each node."""

    def __init__(self, sizes: Variables, types: Mapping[int, int]) -> None:
        self._sizes = sizes
        self._types = types
        self._loops = 0

    def bound(self, node: Any, variables: Variables) -> _Bound:
        """Returns the bound of a node; `variables` are those of the loops around it."""
        kind = node.WhichOneof("kind")
        size, steps = getattr(self, f"_{kind}")(getattr(node, kind), variables)
        type_ = self._types.get(node.id)
        if type_ in _SCALAR_TYPES:
            size = Size()
        elif type_ in _TEXT_TYPES:
            size = Size(1, size.bytes)
        return _Bound(size, steps)

    def _constant(self, constant: bytes, variables: Variables) -> _Bound:  # noqa: ARG002 - as the others
        return _Bound(Size(1, len(constant)), 1)

    def _ident(self, ident: Any, variables: Variables) -> _Bound:
        return _Bound(variables.get(ident.name) or self._sizes.get(ident.name, Size()), 1)

    def _select(self, select: Any, variables: Variables) -> _Bound:
        operand = self.bound(select.operand, variables)
        return _Bound(operand.size, operand.steps + 1)

    def _list(self, items: Any, variables: Variables) -> _Bound:
        return self._made(items.elements, variables)

    def _struct(self, struct: Any, variables: Variables) -> _Bound:
        parts = [part for entry in struct.entries for part in (entry.map_key, entry.value)]
        return self._made(parts, variables)

    def _made(self, parts: Iterable[Any], variables: Variables) -> _Bound:
        size, steps = self._together(parts, variables)
        return _Bound(size, steps + size.steps)

    def _together(self, nodes: Iterable[Any], variables: Variables) -> _Bound:
        bounds = [self.bound(node, variables) for node in nodes if node.WhichOneof("kind")]
        size = sum((bound.size for bound in bounds), Size(0, 0))
        return _Bound(size, 1 + sum(bound.steps for bound in bounds))

    def _call(self, call: Any, variables: Variables) -> _Bound:
        nodes = [node for node in (call.target, *call.args) if node.WhichOneof("kind")]
        bounds = [self.bound(node, variables) for node in nodes]
        size = sum((bound.size for bound in bounds), Size(0, 0))
        steps = 1 + sum(bound.steps for bound in bounds)
        if call.function == "_?_:_":
            return _Bound(bounds[1].size.larger(bounds[2].size), steps)
        if call.function == "_[_]":
            return _Bound(bounds[0].size, steps + 1)
        if call.function == "matches":
            steps += _pattern_size(nodes[-1]) * (
                _PATTERN_STEPS + size.bytes // _TEXT_PER_PATTERN_STEP
            )
        if call.function == "contains":
            text, part = (bound.size.bytes for bound in bounds)
            steps += text // _PLACES_PER_STEP + text * part // _COMPARED_PER_STEP
        return _Bound(size + Size(0, _SLACK), steps + size.steps)

    def _comprehension(self, loop: Any, variables: Variables) -> _Bound:
        """Returns the bound of `all`, `exists`, `exists_one`, `map` or `filter`.

        These macros use the result of the iteration before once, and only add to it, so the result
        grows by the same size in each iteration.
        """
        list_, list_steps = self.bound(loop.iter_range, variables)
        self._loops += 1
        if self._loops > _MOST_LOOPS:
            raise InvalidInput(f"filter: nests more than {_MOST_LOOPS} loops")
        first, first_steps = self.bound(loop.accu_init, variables)
        iterations = min(list_.elements, _MOST_ITERATIONS)
        name = loop.iter_range.ident.name
        is_operations = name == _OPERATIONS and name not in variables
        element = self._sizes[OPERATION] if is_operations else list_
        inner = {**variables, loop.iter_var: element}
        growth = self.bound(loop.step, {**inner, loop.accu_var: Size(0, 0)}).size
        is_scalar = self._types.get(loop.step.id) in _SCALAR_TYPES
        result = Size() if is_scalar else first + growth.times(iterations)
        once = sum(
            self.bound(node, {**inner, loop.accu_var: result}).steps
            for node in (loop.condition, loop.step)
        )
        end, end_steps = self.bound(loop.result, {**variables, loop.accu_var: result})
        self._loops -= 1
        return _Bound(end, list_steps + first_steps + end_steps + iterations * once)
