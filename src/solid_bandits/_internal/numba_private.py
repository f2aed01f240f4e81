"""All uses of numba's private names in this package, and the fallbacks where a version of numba lacks them.

Three things depend on them: inlined functions stop at intermediate code (`PIPELINE`), compiled functions are stored in
our own files (`keep`), and references are not counted where nothing is allocated (`UNCOUNTED` and `spare_counts`). The
names are looked up first. If one is missing, or takes other arguments, numba's own way is used and one warning says so:
results stay the same, but compiling or steps take longer. Numba's own cache on disk does not replace ours, because it
does not notice changes in files other than a function's own. Without ours each process compiles.
"""

# mypy: allow-untyped-calls

import pickle
import re
import warnings
from collections import Counter
from functools import cache, reduce
from importlib import import_module
from typing import Any

import numba
from llvmlite.binding import add_symbol
from numba import types

# Written as "module:Class.name" in numba.core; in brackets, parameters that a function takes, or attributes that it
# uses.
_INLINING = """
    codegen:JITCodeLibrary._finalize_dynamic_globals(self) codegen:JITCodeLibrary._finalize_final_module(self)
    codegen:JITCodeLibrary._finalized codegen:JITCodeLibrary._optimize_final_module(self)
    compiler:Compiler.define_pipelines(self) compiler:DefaultPassBuilder.define_nopython_pipeline(state)
    compiler:Flags.no_compile compiler_machinery:LoweringPass
    compiler_machinery:PassManager.add_pass_after(pass_cls,location)
    compiler_machinery:register_pass(mutates_CFG,analysis_only)
    cpu:CPUContext.insert_user_function(func,fndesc,libs) typed_passes:NativeLowering
"""
_OPTIONS = "_nrt", "no_cfunc_wrapper", "no_cpython_wrapper"
_SPARING = """
    annotations.type_annotations:TypeAnnotation.__init__(calltypes)
    dispatcher:_FunctionCompiler.__init__(targetoptions)
    dispatcher:_FunctionCompiler._compile_core(args,return_type) ir:SetItem ir:StaticSetItem
    options:DefaultOptions._nrt
"""
_KEEPING = """
    caching:NullCache.load_overload(sig,target_context) caching:NullCache.save_overload(sig,cres)
    codegen:JITCPUCodegen.magic_tuple(self) codegen:JITCodeLibrary.has_dynamic_globals
    compiler:CompileResult._rebuild(target_context) compiler:CompileResult._reduce(self)
    dispatcher:Dispatcher.__init__(_cache) runtime._nrt_python:c_helpers serialize:dumps(obj)
"""


def _has(name: str) -> bool:
    """Return whether numba has the name, with its parameters or attributes."""
    place, _, inside = name.rstrip(")").partition("(")
    module, _, path = place.partition(":")
    try:
        found = reduce(getattr, path.split("."), import_module(f"numba.core.{module}"))
        known = {*found.__code__.co_varnames, *found.__code__.co_names} if inside else {""}
    except (ImportError, AttributeError):
        return False
    return known.issuperset(inside.split(","))


def _has_all(names: str) -> bool:
    """Return whether numba has all of these names; missing ones are added to `MISSING`."""
    lacking = [name for name in names.split() if not _has(name)]
    MISSING.extend(lacking)
    return not lacking


MISSING: list[str] = []
"""Names that this numba lacks."""
_INLINES, _SPARES, _KEEPS = _has_all(_INLINING), _has_all(_SPARING), _has_all(_KEEPING)
_KNOWN = [name for name in _OPTIONS if _has_all(f"options:DefaultOptions.{name}")]
if MISSING:
    warnings.warn(
        f"numba {numba.__version__} lacks {len(MISSING)} of its private names that this version of solid-bandits "
        f"uses, such as {MISSING[0]}: results are the same, but take longer. Run: pip install 'numba>=0.68,<0.69'",
        RuntimeWarning,
        stacklevel=2,
    )


def _inlined_only() -> type[Any]:
    """Return a compiler that stops at LLVM's intermediate code, which callers include, optimise and compile.

    Numba optimises every function and turns it into machine code, even one that is inlined wherever it is called. With
    a dozen levels of calls, the innermost code is compiled a dozen times: more than half of SOLID's compile time.
    """
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler, DefaultPassBuilder
    from numba.core.compiler_machinery import LoweringPass, register_pass
    from numba.core.typed_passes import NativeLowering

    class InlinedLibrary(JITCodeLibrary):
        """Intermediate code that is linked into callers and never optimised or made machine code by itself."""

        def _optimize_final_module(self) -> None:
            pass

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

    @register_pass(mutates_CFG=False, analysis_only=False)
    class OfferToCallers(LoweringPass):
        """Makes the function known to callers, under a dummy entry point."""

        _name = "solid_bandits_offer_to_callers"

        def __init__(self) -> None:
            LoweringPass.__init__(self)

        def run_pass(self, state: Any) -> bool:
            # Dispatchers accept only builtins; this one is unique, and calling it raises an error.
            entry: Any = [].index
            state.targetctx.insert_user_function(entry, state.cr.fndesc, [state.library])
            state["cr"] = state.cr._replace(cfunc=entry)
            return True

    class InlinedOnly(Compiler):
        """Numba's compiler, up to intermediate code."""

        def define_pipelines(self) -> list[Any]:
            """Return the pipelines of compiler passes."""
            state = self.state
            state.flags.no_compile = True
            state.library = InlinedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            passes = DefaultPassBuilder.define_nopython_pipeline(state)
            passes.add_pass_after(OfferToCallers, NativeLowering)
            passes.finalize()
            return [passes]

    return InlinedOnly


PIPELINE = _inlined_only() if _INLINES else None
"""Compiler of inlined functions; None means numba's own, which takes longer."""


COUNTED, UNCOUNTED = ({"_nrt": True}, {"_nrt": False}) if "_nrt" in _KNOWN else ({}, {})
"""Options of `njit`: whether references are counted, which created arrays need."""
WITHOUT_ENTRIES = dict.fromkeys({*_KNOWN} - {"_nrt"}, True)
"""Options of `njit` that omit the entry points by which Python, or C, may call a function."""


def spare_counts(dispatcher: Any) -> None:
    """Compile without reference counts any function that creates nothing to be counted.

    Where an error may be raised, as with checked indices, numba keeps all counts, which would be half of a small step.
    """
    if not _SPARES:
        return
    compiler = dispatcher._compiler
    compile_core = compiler._compile_core

    def compile_sparingly(arguments: Any, return_type: Any) -> Any:
        result = compile_core(arguments, return_type)
        if not _makes_numbers_only(result):
            return result
        # The functions it calls are compiled by now, with counts or without, as they were first requested.
        compiler.targetoptions["_nrt"] = False
        try:
            return compile_core(arguments, return_type)
        except numba.core.errors.NumbaError:  # something in it does need counts
            return result
        finally:
            compiler.targetoptions["_nrt"] = True

    compiler._compile_core = compile_sparingly


def _makes_numbers_only(result: Any) -> bool:
    """Return whether a compiled function returns numbers and creates nothing but numbers and views of its arguments."""
    from numba.core import ir

    for done, signature in result.type_annotation.calltypes.items():
        operation = getattr(done, "op", None)
        if signature is None or operation in ("getiter", "iternext", "exhaust_iter"):
            continue
        if operation in ("getitem", "static_getitem"):
            if any(map(_is_choice, signature.args[1:])):
                return False
        elif not _is_number(signature.return_type) or (
            isinstance(done, ir.SetItem | ir.StaticSetItem) and not _is_number(signature.args[2])
        ):
            return False
    return _is_number(result.signature.return_type)


def _is_choice(index: Any) -> bool:
    """Return whether an index creates a new array, because it selects entries by another array."""
    if isinstance(index, types.BaseTuple):
        return any(_is_choice(one) for one in index)  # type: ignore[attr-defined]
    return isinstance(index, types.Array)


def _is_number(kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple):
        return all(_is_number(one) for one in kind)  # type: ignore[attr-defined]
    plain = types.Number, types.Boolean, types.NoneType, types.RangeType, types.SliceType
    return isinstance(kind, (*plain, types.Literal))


def keep(dispatcher: Any, files: Any) -> None:
    """Make a compiled function ask `files`, a `DiskCache`, before it compiles, and store its result there."""
    if _KEEPS:
        dispatcher._cache = _Overloads(files)


_HASHES = b"_numba_hashsecret"
"""Prefix of the names of Python's hash secrets: machine code links to them, and numba's rules provide them."""
_UNRESOLVED = ".numba.unresolved$"
"""Prefix of the name of a function that is not compiled yet, as when two call each other."""


@cache
def _let_link() -> None:
    """Register the addresses of the functions by which machine code allocates.

    Loading numba's rules does this too, and also compiles parts of it to be linked into later code; machine code on
    disk already contains these.
    """
    from numba.core.runtime._nrt_python import c_helpers

    for name, address in c_helpers.items():
        add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class _Overloads:
    """The cache interface that a numba dispatcher calls."""

    def __init__(self, files: Any) -> None:
        self._files = files

    @property
    def cache_path(self) -> str:
        """The folder, as reported in numba's statistics."""
        return self._files.place

    def enable(self) -> None:
        """No-op: cannot be disabled. Nothing needs flushing either, since stale files are never requested."""

    disable = flush = enable

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the function compiled for this signature, or None.

        Numba's own caches first load all its rules for typing and compiling, and with them SciPy. That takes longer
        than all of `import numba`, and machine code does not need it. The compiler loads them itself when it is needed.
        """

        def unpack(data: bytes) -> Any:
            from numba.core.compiler import CompileResult

            _let_link()
            if _HASHES in data:
                target_context.refresh()
            parts = pickle.loads(data)
            if (parts[1].modname, parts[1].qualname, tuple(parts[3].args)) != (*self._files.name, tuple(sig)):
                raise ValueError("it belongs to another function")
            return CompileResult._rebuild(target_context, *parts)

        return self._files.load(sig, _processor(target_context), unpack)

    def save_overload(self, sig: Any, result: Any) -> None:
        """Store the function compiled for this signature."""
        if result.lifted or result.library.has_dynamic_globals:
            return
        from numba.core.serialize import dumps

        text = result.library.get_llvm_str()
        if _UNRESOLVED in text:  # the next process would have no address for it
            return

        def pack() -> bytes:
            *parts, environments = result._reduce()
            # An environment holds the Python objects that a function uses. Each inlined function has one; if the code
            # names it only once, to declare it, nothing uses it, and loading it would import its module.
            named = Counter(re.findall(r"_ZN08NumbaEnv[\w$.]*", text))
            used = [one for one in environments if named[one.env_name] != 1]
            return dumps((*parts, tuple(used)))

        self._files.save(sig, _processor(result.target_context), pack)


def _processor(target_context: Any) -> tuple[Any, ...]:
    """Return properties that distinguish code for one kind of processor from code for another."""
    return target_context.codegen().magic_tuple()
