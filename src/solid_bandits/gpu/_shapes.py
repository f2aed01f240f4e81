"""Arrays whose shapes are constants when code is compiled for a GPU."""

# mypy: ignore-errors

from collections.abc import Callable
from functools import cache
from typing import Any

from numba.core.config import DISABLE_JIT, ENABLE_CUDASIM

if DISABLE_JIT or ENABLE_CUDASIM:

    @cache
    def shaped(sizes: tuple[int, ...]) -> Callable[[Any], Any]:
        """Return a function that returns its argument, an array of this shape."""
        return lambda array: array

else:
    from numba.cuda import types
    from numba.cuda.extending import intrinsic
    from numba.cuda.np.arrayobj import make_array, populate_array

    @cache
    def shaped(sizes: tuple[int, ...]) -> Callable[[Any], Any]:
        """Return a function that returns its argument as a contiguous array of this shape, a compile-time constant."""

        @intrinsic
        def of_shape(typingctx, array):
            def codegen(context, builder, signature, arguments):
                kind = signature.return_type
                word = context.get_value_type(types.intp)
                strides = [context.get_abi_sizeof(context.get_data_type(kind.dtype))]
                for size in reversed(sizes[1:]):
                    strides.insert(0, strides[0] * size)
                given = make_array(kind)(context, builder, arguments[0])
                made = make_array(kind)(context, builder)
                populate_array(
                    made,
                    data=given.data,
                    shape=[word(size) for size in sizes],
                    strides=[word(stride) for stride in strides],
                    itemsize=given.itemsize,
                    meminfo=given.meminfo,
                    parent=given.parent,
                )
                return made._getvalue()

            return array(array), codegen

        return of_shape
