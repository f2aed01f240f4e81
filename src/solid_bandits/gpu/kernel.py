"""Code of a thread: it assembles the agent of its run, and plays the same loop as the CPU.

The source of the kernel is generated for one layout, because a thread's own arrays need constant shapes. The shapes of
read-only arrays are made constants too, so that loops over arms and dimensions unroll and small arrays stay in
registers.
"""

from functools import cache
from importlib import import_module
from typing import Any

from numba.core.config import ENABLE_CUDASIM  # type: ignore[attr-defined]

from solid_bandits._internal.compiling import Kernel
from solid_bandits.core import loop
from solid_bandits.gpu._shapes import shaped
from solid_bandits.gpu.layout import Layout, Leaf

cuda: Any = import_module("numba.cuda")  # the simulator and the compiler define different names

BOXES = {"float": "float64", "int": "int64", "bool": "bool", "word": "uint64", "rng": "uint64"}


@cache
def device_function(function: Any, inlined: bool = True) -> Any:
    """Return one of our functions compiled for the GPU, callable from device code."""
    return cuda.jit(device=True, forceinline=inlined)(function)


def type_on_gpu(kernel: Kernel) -> Any:
    """Return the object by which the GPU's compiler refers to one of our kernels."""
    return device_function(kernel.py_func, kernel.copied)._numba_type_


def _loop_for_a_thread() -> Any:
    """Return the CPU's loop for the GPU; the simulator executes its source, as it does with all kernels."""
    text: Any = getattr(loop._loop, "py_func", loop._loop)
    return text if ENABLE_CUDASIM else device_function(text)


class Source:
    """Source code of the kernel for one layout, and the names that it uses."""

    def __init__(self, layout: Layout, truth_shapes: dict[str, tuple[int, ...]]) -> None:
        self.names: dict[str, Any] = {
            "cuda": cuda,
            "Truth": loop.Truth,
            "Trace": loop.Trace,
            "nothing": shaped((0, 2)),  # pulls are not counted
            "play": _loop_for_a_thread(),
        }
        self.lines: list[str] = []
        self.reads: list[str] = []
        self.variables: dict[str, str] = {}
        for leaf in layout.leaves:
            self.variables[leaf.path] = self._leaf(leaf)
        agent = self._tree(layout.tree)
        truth = [self._read(f"truth_{name}", shape) for name, shape in truth_shapes.items()]
        reads = "".join(f"{name}, " for name in self.reads)
        truths = "".join(f"truth_{name}, " for name in truth_shapes)
        head = (
            f"def play_runs(count, per_run, floats, ints, rngs, environments, {reads}{truths}"
            "truth_noise_std, steps, regret, explored, failed):\n"
            "    run = cuda.grid(1)\n"
            "    if run < count:\n"
            "        row = run * per_run\n"
            "        environment = cuda.local.array(4, 'uint64')\n"
            "        for i in range(4):\n"
            "            environment[i] = environments[run, i]\n"
        )
        features, means, gaps, edges, available = truth
        tail = [
            f"agent = {agent}",
            f"truth = Truth({features}, {means}, {gaps}, {edges}, truth_noise_std[row], {available})",
            "trace = Trace(steps, regret[run], explored[run], nothing(failed[0:0]))",
            "step, arm = play(agent, truth, trace, environment, 0, steps.shape[0])",
            "failed[run, 0] = step",
            "failed[run, 1] = arm",
        ]
        self.text = head + "".join(f"        {line}\n" for line in self.lines + tail)

    def _leaf(self, leaf: Leaf) -> str:
        if leaf.alias != leaf.path:
            return self.variables[leaf.alias]
        if leaf.shape is None:
            number = f"{'floats' if leaf.kind == 'float' else 'ints'}[row, {leaf.place}]"
            return f"({number} != 0)" if leaf.kind == "bool" else number
        if not leaf.own:
            name = f"read_{len(self.reads)}"
            self.reads.append(name)
            # The length of arrays next to the parameters may depend on the horizon; another length must give the same
            # code.
            return f"{name}[row]" if leaf.path.startswith("params.") else self._read(name, leaf.shape)
        name = f"own_{len(self.variables)}"
        if leaf.shape[:1] == (0,):  # a thread's array cannot be empty, so none of its rows are used
            whole = (1, *leaf.shape[1:])
            self.lines.append(f"{name}_whole = cuda.local.array({whole}, '{BOXES[leaf.kind]}')")
            self.names[f"{name}_shape"] = shaped(leaf.shape)
            self.lines.append(f"{name} = {name}_shape({name}_whole[0:0])")
            return name
        self.lines.append(f"{name} = cuda.local.array({leaf.shape}, '{BOXES[leaf.kind]}')")
        self._fill(name, leaf)
        return name

    def _read(self, name: str, shape: tuple[int, ...]) -> str:
        function = "shaped_" + "_".join(map(str, shape))
        self.names[function] = shaped(shape)
        return f"{function}({name}[row])"

    def _fill(self, name: str, leaf: Leaf) -> None:
        assert leaf.shape is not None
        indices = [f"i{axis}" for axis in range(len(leaf.shape))]
        flat = "0"
        for index, size in zip(indices, leaf.shape, strict=True):
            flat = index if flat == "0" else f"({flat}) * {size} + {index}"
        if leaf.kind == "rng":
            value = f"rngs[run, {flat}]"
        else:
            value = f"{'floats' if leaf.kind == 'float' else 'ints'}[row, {leaf.place} + {flat}]"
            value = f"{value} != 0" if leaf.kind == "bool" else value
        for depth, (index, size) in enumerate(zip(indices, leaf.shape, strict=True)):
            self.lines.append(f"{'    ' * depth}for {index} in range({size}):")
        place = ", ".join(indices) if indices else "()"
        self.lines.append(f"{'    ' * len(indices)}{name}[{place}] = {value}")

    def _tree(self, tree: Any) -> str:
        if tree is None:
            return "None"
        if isinstance(tree, str):
            return self.variables[tree]
        kind, fields = tree
        name = f"{kind.__name__}_{sum(key.startswith(kind.__name__) for key in self.names)}"
        for known, one in self.names.items():
            if one is kind:
                name = known
        self.names[name] = kind
        return f"{name}({', '.join(self._tree(below) for _, below in fields)})"


_MADE: dict[tuple[Any, ...], Any] = {}


def make_kernel(layout: Layout, truth_shapes: dict[str, tuple[int, ...]]) -> Any:
    """Return the kernel that plays runs of agents of this layout; it is compiled at its first launch."""
    source = Source(layout, truth_shapes)
    key = (source.text, *(id(one) for one in source.names.values()))
    if key not in _MADE:
        exec(compile(source.text, "<kernel of a GPU's thread>", "exec"), source.names)
        _MADE[key] = cuda.jit(source.names["play_runs"])
    return _MADE[key]
