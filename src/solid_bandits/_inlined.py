"""Functions that are compiled for their callers' sake only: no machine code of their own is ever made.

Numba optimises every function and turns it into machine code, also those that are inlined wherever they are called.
With a dozen levels of calls the innermost code is compiled a dozen times: that was two thirds of the time to compile
SOLID. Here such a function stops at LLVM's intermediate code, which its caller takes in, optimises and compiles.

This file leans on numba's inside more than any other. `tests/test_inlined.py` says which numba broke it; `PIPELINE` can
be None, numba's own, at any time: it changes how long compiling takes and nothing else.
"""

# mypy: allow-untyped-calls

from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, DefaultPassBuilder
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.typed_passes import NativeLowering


class _InlinedLibrary(JITCodeLibrary):
    """Intermediate code that is linked into callers; never optimised or made machine code by itself."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=False, analysis_only=False)
class _OfferToCallers(LoweringPass):
    """Makes the function known to callers, under an entry that leads nowhere."""

    _name = "solid_bandits_offer_to_callers"

    def __init__(self) -> None:
        LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        descriptor = state.cr.fndesc
        name = descriptor.qualname.split(".")[-1]
        entry = _dynfunc.make_function(
            descriptor.lookup_module(), name, "inlined into its callers", 0, state.cr.env, (state.library,)
        )
        state.targetctx.insert_user_function(entry, descriptor, [state.library])
        state["cr"] = state.cr._replace(cfunc=entry)
        return True


class InlinedOnly(Compiler):
    """Numba's compiler, up to intermediate code."""

    def define_pipelines(self) -> list[Any]:
        """The passes."""
        state = self.state
        state.flags.no_compile = True
        state.library = _InlinedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        passes = DefaultPassBuilder.define_nopython_pipeline(state)
        passes.add_pass_after(_OfferToCallers, NativeLowering)
        passes.finalize()
        return [passes]


PIPELINE: type[Any] | None = InlinedOnly
