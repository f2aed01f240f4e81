"""Functions that choose their code by the type of their first argument, in Python and in compiled code alike.

What differs between variants by *code* is a named tuple's type, and numba resolves it when it compiles: no branch is
left, and code that no one uses is not compiled. Because a type has a name, unlike a function that is passed in, numba
also finds what it compiled in its cache in the next process.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba.extending import overload

from solid_bandits._compile import INLINED

F = TypeVar("F", bound=Callable[..., object])


def by_type(declaration: F) -> F:
    """Turn a declaration into a function that calls what `variant` registered for the type of its first argument."""
    kernels: dict[type, Any] = {}

    def call(first: Any, *rest: Any) -> Any:
        return kernels[type(first)](first, *rest)

    # Numba compares the signatures of a typing function and of what it returns, annotations included.
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
    """Make `kernel` what a function declared with `by_type` does for first arguments of type `kind`."""
    function.__dict__["kernels"][kind] = kernel
