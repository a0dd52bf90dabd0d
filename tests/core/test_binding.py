"""What a loop of the core accepts, and what it refuses by name."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from boostbp import core
from boostbp.core.binding import Loop

LOOPS = {value.__name__: value for value in vars(core).values() if isinstance(value, Loop)}


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def unaligned(array):
    found = np.empty(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    found[:] = array
    assert not found.flags.aligned or found.size == 0
    return found


LAYOUTS = {
    "plain": lambda array: array,
    "read-only": read_only,
    "by columns": np.asfortranarray,
    "every other one": lambda array: np.repeat(array, 2, axis=0)[::2],
    "backwards": lambda array: array[::-1].copy()[::-1],
    "unaligned": unaligned,
    "other bytes": lambda array: array.astype(array.dtype.newbyteorder()),
}
layouts = st.sampled_from(sorted(LAYOUTS)).map(LAYOUTS.get)


@st.composite
def leaf_systems(draw):
    """Path columns, degree, outputs, Gram matrices, moments and scalings of some leaves."""
    k = draw(st.lists(st.integers(0, 4), max_size=5))
    degree, n_outputs = draw(st.integers(1, 2)), draw(st.sampled_from([1, 2, 3, 9]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    gram, moment = [np.empty(0)], [np.empty(0)]
    for terms in 1 + degree * np.array(k, int):
        phi = rng.normal(size=(rng.integers(1, 12), terms))
        gram.append((phi.T @ phi).ravel())
        moment.append(rng.normal(size=terms * n_outputs))
    start = np.cumsum([0, *k])
    scaling = rng.normal(size=(start[-1], 4)) * (rng.random((start[-1], 4)) < 0.8)
    return start, degree, n_outputs, np.concatenate(gram), np.concatenate(moment), scaling


# Arguments that a loop refuses. None of these calls reaches C, so that the numbers need no meaning.


def fields_of(loop):
    """The arrays of a loop, also those of its records."""
    fields = [field for argument in loop.arguments for field in getattr(argument, "fields", [argument])]
    return [field for field in fields if hasattr(field, "dtype")]


def arguments_of(loop, sizes, instead):
    """Arguments for sizes of these names, but for arrays that others stand for."""

    def value(argument):
        if hasattr(argument, "fields"):
            return tuple(map(value, argument.fields))
        if not hasattr(argument, "dtype"):
            return 0
        shape = [2] * argument.n_axes
        for axis, size, more in argument.sizes:
            shape[axis] = sizes[size] + more
        for axis, n in argument.fixed:
            shape[axis] = n
        array = np.zeros(shape, argument.dtype)
        return instead[id(argument)](array) if id(argument) in instead else array

    return list(map(value, loop.arguments))


@st.composite
def a_loop(draw, is_fit=lambda field: True):
    """A loop, one of its arrays, and sizes for all."""
    name = draw(st.sampled_from([name for name, loop in LOOPS.items() if any(map(is_fit, fields_of(loop)))]))
    fields = fields_of(LOOPS[name])
    sizes = {size: draw(st.integers(2, 4)) for field in fields for _, size, _ in field.sizes}
    return LOOPS[name], draw(st.sampled_from([field for field in fields if is_fit(field)])), sizes


def shares_a_size(field):
    """Whether another array of any loop with this one has a size of the same name."""
    loop = next(loop for loop in LOOPS.values() if field in fields_of(loop))
    others = {size for other in fields_of(loop) if other is not field for _, size, _ in other.sizes}
    return any(size in others for _, size, _ in field.sizes)


@given(a_loop())
def test_numbers_of_a_type_that_does_not_fit_are_refused(drawn):
    loop, field, sizes = drawn
    other = complex if field.dtype.kind == "f" else float
    with pytest.raises(TypeError, match=rf"{field.name} has the type {np.dtype(other)} "):
        loop(*arguments_of(loop, sizes, {id(field): lambda array: array.astype(other)}))


@given(a_loop())
def test_another_number_of_axes_is_refused(drawn):
    loop, field, sizes = drawn
    with pytest.raises(ValueError, match=rf"{field.name} has {field.n_axes + 1} axes instead of {field.n_axes}"):
        loop(*arguments_of(loop, sizes, {id(field): lambda array: array[None]}))


@given(a_loop(shares_a_size), st.sampled_from([-1, 1, 100]))
def test_lengths_that_do_not_agree_are_refused(drawn, more):
    loop, field, sizes = drawn
    others = {size for other in fields_of(loop) if other is not field for _, size, _ in other.sizes}
    axis, size = next((axis, size) for axis, size, _ in field.sizes if size in others)
    change = lambda array: np.zeros([n + more * (k == axis) for k, n in enumerate(array.shape)], array.dtype)  # noqa: E731
    with pytest.raises(ValueError, match=rf"Axis \d of \w+ has length \d+ where {size}=\d+"):
        loop(*arguments_of(loop, sizes, {id(field): change}))


def every_second(array):
    """The same numbers with gaps between them."""
    array = np.repeat(array, 2, axis=-1)[..., ::2]
    assume(not array.flags.c_contiguous)  # a single number has no gaps
    return array


UNWRITABLE = {"read-only": read_only, "with gaps": every_second}


@given(a_loop(lambda field: field.is_written), st.sampled_from(sorted(UNWRITABLE)))
def test_an_array_that_cannot_be_written_is_refused(drawn, kind):
    loop, field, sizes = drawn
    with pytest.raises(TypeError, match=rf"{field.name} has the type .* C-contiguous and writable"):
        loop(*arguments_of(loop, sizes, {id(field): UNWRITABLE[kind]}))


@given(st.integers(1, 3))
def test_an_array_to_write_in_single_precision_is_refused(paths):
    with pytest.raises(TypeError, match="out has the type float32"):
        core.scalings(np.ones((paths, 4)), 0.0, np.zeros((paths, 4), np.float32))


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_an_argument_too_few_or_too_many_is_refused(loop):
    sizes = {size: 2 for field in fields_of(loop) for _, size, _ in field.sizes}
    arguments = arguments_of(loop, sizes, {})
    for wrong in (arguments[:-1], [*arguments, 0]):
        with pytest.raises(ValueError, match="zip"):
            loop(*wrong)


@given(leaf_systems(), layouts)
def test_first_arguments_may_be_bound(system, layout):
    start, degree, n_outputs, gram, moment, _ = system
    expected, weight = moment.copy(), moment.copy()
    core.solve_leaves(start, degree, n_outputs, gram, expected, 1.0, False, 1.0)
    solve = core.solve_leaves.bind_first(layout(start), degree, n_outputs, layout(gram))
    for _ in range(2):
        weight[:] = moment
        solve(weight, 1.0, False, 1.0)
        np.testing.assert_array_equal(weight, expected)
    with pytest.raises(TypeError, match="weight has the type"):
        solve(read_only(weight), 1.0, False, 1.0)


def test_lengths_of_bound_arguments_count():
    ranges = np.zeros((3, 4))
    with pytest.raises(ValueError, match="Axis 0 of out has length 2 where paths=3"):
        core.scalings.bind_first(ranges, 0.0)(np.zeros((2, 4)))
