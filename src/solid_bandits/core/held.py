"""An agent handed over to compiled code once: held in one place, and found by an address and a type.

Passing a tuple of some twenty arrays takes microseconds, several times as long as a decision; an address takes one
number. The arrays are the agent's own, not copies.
"""

# mypy: allow-untyped-calls, disable-error-code="call-arg"

from typing import Any, NamedTuple

from numba import types
from numba.core.cgutils import create_struct_proxy
from numba.core.imputils import impl_ret_borrowed
from numba.experimental import structref
from numba.extending import intrinsic

from solid_bandits._internal.compiling import jit_allocating
from solid_bandits._internal.types import Bools, Words


@structref.register
class HeldType(types.StructRef):
    """Numba's type of an agent held in one place."""

    @property
    def key(self) -> Any:
        """Key that distinguishes it from others; by numba's usual key, two classes of the same name would be equal."""
        return tuple(self.field_dict.items())


class Held(structref.StructRefProxy):
    """Owner of the parts, which may be read by their address as long as it lives."""


structref.define_proxy(Held, HeldType, ["parts"])


class Parts(NamedTuple):
    """The parts that are held."""

    agent: Any
    """The policy at work."""
    dim: int
    """Length of features."""
    blocks: int
    """Number of block numbers with which features may begin; 0 if they begin with a feature."""
    floor: float
    rng: Words
    """Random numbers of the floor."""
    own: bool
    """Whether the policy is a user's own."""
    mask: Bools
    """Scratch for the mask of available arms."""


@jit_allocating
def hold(parts: Parts) -> Any:
    """Return the parts, held in one place."""
    return Held(parts)


@intrinsic
def _address(context: Any, held: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        found = create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])
        place = context.nrt.meminfo_data(builder, found.meminfo)
        return builder.ptrtoint(place, context.get_value_type(types.intp))

    return types.intp(held), generate


@jit_allocating
def address_of(held: Any) -> int:
    """Return the address of the parts, valid as long as they are held."""
    return _address(held)


@intrinsic
def parts_at(context: Any, kind: Any, address: Any) -> Any:
    """Return the parts, given the holder's type and address.

    They are borrowed: reading them through the `Held` itself would count a reference to each of their arrays, two
    locked instructions for each of some twenty, which takes twice as long as a decision.
    """
    struct = kind.instance_type

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        content = struct.get_data_type()
        kept = context.data_model_manager[content].get_value_type().as_pointer()
        place = builder.inttoptr(arguments[1], kept)
        parts = create_struct_proxy(content)(context, builder, ref=place).parts
        # A caller compiled with reference counts will release the reference that this adds.
        return impl_ret_borrowed(context, builder, struct.field_dict["parts"], parts)

    return struct.field_dict["parts"](kind, address), generate
