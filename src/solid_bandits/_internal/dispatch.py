"""Functions that choose their code by the type of their first argument, both in Python and in compiled code.

Variants that differ by *code* are named tuples of different types, which numba resolves when it compiles: no branch is
left, and unused code is not compiled. Unlike a function passed as an argument, a type has a name, under which the next
process finds the compiled code in the cache.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba.extending import overload

from solid_bandits._internal.compiling import INLINED

F = TypeVar("F", bound=Callable[..., object])


def by_type(declaration: F) -> F:
    """Turn a declaration into a function that calls the kernel registered by `variant` for its first argument's
    type.
    """
    kernels: dict[type, Any] = {}

    def call(first: Any, *rest: Any) -> Any:
        return kernels[type(first)](first, *rest)

    # Numba compares the signatures of a typing function and of the function it returns, annotations included.
    def typed(first: Any, *rest: Any) -> Any:
        kernel = kernels[first.instance_class]

        def compiled(first: Any, *rest: Any) -> Any:
            return kernel(first, *rest)

        return compiled

    overload(call, jit_options=INLINED, target="generic")(typed)
    call.__name__, call.__doc__ = declaration.__name__, declaration.__doc__
    call.__dict__["kernels"] = kernels
    return cast(F, call)


def variant(function: Callable[..., object], kind: type, kernel: Callable[..., object]) -> None:
    """Make a function declared with `by_type` call `kernel` for first arguments of type `kind`."""
    function.__dict__["kernels"][kind] = kernel
