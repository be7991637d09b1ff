"""Plans the memory of deep neural networks.

A net asks for the same buffers in the same order every time it runs. `plan` gives every buffer an offset in one arena:
buffers that are live at one step never overlap, and the arena is as small as can be. It also proves how far from the
optimum the plan can be at most.

>>> import planlab
>>> plan = planlab.plan(lower=[0, 1, 2], upper=[3, 2, 5], size=[4096, 1024, 4096])
>>> plan.height, plan.bound, plan.proved
(8192, 8192, True)
>>> trace = planlab.read("chainer/alexnet/infer/b1")
>>> trace.plan().height
10169344

`schedule` decides what a net in training keeps, swaps to the host and computes again. `planlab.torch`, a module to import on
its own, makes nets out of modules of PyTorch. `record` records a net of PyTorch or JAX while it runs. A notebook draws plans as maps and traces as load curves.
"""

from ._native import __version__, planners
from ._planning import Infeasible, NoPlan, Plan, plan
from ._recording import Recording, record
from ._scheduling import InfeasibleSchedule, NoSchedule, Schedule, schedule
from ._traces import Trace, read

__all__ = [
    "Infeasible",
    "InfeasibleSchedule",
    "NoPlan",
    "NoSchedule",
    "Plan",
    "Recording",
    "Schedule",
    "Trace",
    "__version__",
    "plan",
    "planners",
    "read",
    "record",
    "schedule",
]
