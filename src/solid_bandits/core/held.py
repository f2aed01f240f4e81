"""An agent handed to compiled code once and for all: held in one place, found again by an address and a type.

To hand over a tuple of some twenty arrays takes microseconds, several times what a decision takes; an address takes one
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
    """To compiled code, an agent held in one place."""

    @property
    def key(self) -> Any:
        """What tells it from others: by its words, as numba would, two classes of the same name would be one."""
        return tuple(self.field_dict.items())


class Held(structref.StructRefProxy):
    """What keeps the parts; they may be read by their address as long as it lives."""


structref.define_proxy(Held, HeldType, ["parts"])


class Parts(NamedTuple):
    """What is held."""

    agent: Any
    """The policy at work."""
    dim: int
    """The length of features."""
    blocks: int
    """How many block numbers there are, with which features begin; 0 where they begin with a feature."""
    floor: float
    rng: Words
    """Of the floor."""
    own: bool
    """Whether the policy is a user's own."""
    mask: Bools
    """Scratch, for which arms may be pulled."""


@jit_allocating
def hold(parts: Parts) -> Any:
    """The parts, held in one place."""
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
    """Where the parts are, as long as they are held."""
    return _address(held)


@intrinsic
def parts_at(context: Any, kind: Any, address: Any) -> Any:
    """The parts, by the type of what holds them and its address. They are borrowed: reading them through the
    `Held` itself would count a reference to each of their arrays, two locked instructions for each of some twenty,
    twice what a decision takes.
    """
    struct = kind.instance_type

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        content = struct.get_data_type()
        kept = context.data_model_manager[content].get_value_type().as_pointer()
        place = builder.inttoptr(arguments[1], kept)
        parts = create_struct_proxy(content)(context, builder, ref=place).parts
        # Where the caller is compiled with counts of references, it will take back the one that this gives.
        return impl_ret_borrowed(context, builder, struct.field_dict["parts"], parts)

    return struct.field_dict["parts"](kind, address), generate
