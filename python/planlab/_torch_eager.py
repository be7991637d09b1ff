"""Trains a module without compilation within a number of bytes: watches two steps, plans, and follows the plan."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from ._scheduling import NoSchedule, schedule
from ._torch_budget import Choice, DoesNotFit, find_choice, last_options, saved_values
from ._torch_eager_forms import StepForm, step_key
from ._torch_eager_hook import ModuleHook
from ._torch_eager_net import EagerNet
from ._torch_eager_plan import EagerProblem, Layout
from ._torch_eager_saved import SavedTensor
from ._torch_eager_steps import PlannedStep, Step, StepPlan, WatchedStep, is_in_backward
from ._torch_eager_store import HostStore
from ._torch_joint import require_torch
from ._torch_live import dispatch_mode
from ._torch_report import FitReport, find_capacity, machine_text

torch: Any = require_torch("planlab.torch.fit")
_MOST_WATCHED = 6
_MOST_PLANS = 4
_MOST_FORMS = 16


class _ThreadState(threading.local):
    """What hooks of a module ask, because they are called in every thread that calls the module."""

    planner: EagerPlanner | None = None
    """The planner of the block in this thread."""


_thread = _ThreadState()


class EagerPlanner:
    """Keeps the peak of each step of a module within a capacity; `fit` makes one.

    The first two steps of each form of inputs run as they are, and are recorded. If they did the same, the third one begins
    with a plan: what stays, what goes to the host, what is computed again. A step begins with the forward pass of the module
    and ends with the first backward pass that goes through the module.
    """

    def __init__(
        self,
        capacity: int | None,
        *,
        share: float | None = None,
        store: HostStore | None = None,
        scheduler: str | None = "joint",
        time_limit: float = 10.0,
    ) -> None:
        self.reports: list[FitReport] = []
        """A report for each plan."""
        self.steps_planned = 0
        """How many steps began with a plan, and ended."""
        self.steps_departed = 0
        """How many of these left their plan, so that their peak may be above the capacity."""
        self._capacity = capacity
        self._share = share
        self._store = store
        self._scheduler = scheduler
        self._time_limit = time_limit
        self._forms: dict[Any, StepForm] = {}
        self._has_more_forms = False
        self._form: StepForm | None = None
        self._step: Step | None = None
        self._is_own = False
        self._is_passing = False
        """Whether a backward pass has begun in the step, and has not ended."""
        self._is_recomputed = False
        """Whether a backward pass has called the module, as checkpoints do."""
        self._is_explained = False
        """Whether the caller has learnt why nothing was planned."""

    @property
    def copied_bytes(self) -> int:
        """What was copied to the host and back so far."""
        return 0 if self._store is None else self._store.copied_bytes

    def begin_step(self, module: Any, args: Any, kwargs: Any) -> None:
        """Begins a step before the forward pass of the module, unless that belongs to the step under way.

        Raises DoesNotFit if the steps of this form do not fit.
        """
        if _thread.planner is not self or not torch.is_grad_enabled():
            return
        if is_in_backward():
            self._is_recomputed = True
            return
        step = self._current_step()
        if step is None or step.live_saves == 0:
            self._drop_step()
            self._begin_step(module, args, kwargs)

    def _begin_step(self, module: Any, args: Any, kwargs: Any) -> None:
        self._form = form = self._form_of(step_key(module, args, kwargs))
        if form is None or form.is_plain:
            return
        form.check_refusal()
        with self._own_operations():
            if form.plan is None and form.is_confirmed:
                self._plan(form)
        if not form.is_plain:
            self._step = WatchedStep() if form.plan is None else PlannedStep(form.plan, self._store)

    def end_forward(self, *_: Any) -> None:
        """Notes the end of a forward pass of the module."""
        is_evaluation = not torch.is_grad_enabled() or is_in_backward()
        if self._step is not None and _thread.planner is self and not is_evaluation:
            self._step.end_forward()

    def _form_of(self, key: Any) -> StepForm | None:
        if key in self._forms or len(self._forms) < _MOST_FORMS:
            return self._forms.setdefault(key, StepForm())
        if not self._has_more_forms:
            self._has_more_forms = True
            _warn(f"the module gets inputs of more than {_MOST_FORMS} forms; steps of further forms run as they are")
        return None

    def _current_step(self) -> Step | None:
        """The step under way. One whose backward pass has failed, or whose graph is gone, ends here."""
        step = self._step
        if step is None:
            return None
        if is_in_backward():
            self._await_end(step)
        elif self._is_passing or step.is_forgotten:
            self._drop_step()
        return self._step

    def _drop_step(self) -> None:
        """Ends the step under way without a judgement."""
        if self._step is not None:
            self._step.close()
        self._step, self._is_passing = None, False

    @contextmanager
    def _own_operations(self) -> Iterator[None]:
        """Operations in the block belong to the planner, and not to the step."""
        before, self._is_own = self._is_own, True
        try:
            with torch.no_grad():
                yield
        finally:
            self._is_own = before

    def dispatch(self, operation: Any, args: Any, kwargs: Any) -> Any:
        """Runs an operation for the mode that sees all of them."""
        # Autograd detaches what it hands out, which takes no memory.
        if self._is_own or operation is torch.ops.aten.detach.default or (step := self._current_step()) is None:
            return operation(*args, **kwargs)
        return step.run(operation, args, kwargs)

    def _await_end(self, step: Step) -> None:
        if not self._is_passing:
            self._is_passing = True
            torch.autograd.Variable._execution_engine.queue_callback(lambda: self._end_backward(step))

    def pack(self, tensor: Any) -> SavedTensor:
        """What autograd holds in the place of a tensor that it saves."""
        with self._own_operations():
            step = None if is_in_backward() else self._current_step()
            return SavedTensor(tensor, is_leaf=tensor.is_leaf) if step is None else step.save(tensor)

    def unpack(self, saved: SavedTensor) -> Any:
        """The tensor that autograd saved."""
        self._current_step()
        with self._own_operations():
            return saved.restore()

    def _end_backward(self, step: Step) -> None:
        """Ends the step, unless the backward pass was that of a loss beside the module."""
        if step is not self._step:
            return
        self._is_passing = False
        if not step.is_complete:
            return
        self._drop_step()
        form = self._form
        assert form is not None
        if isinstance(step, PlannedStep):
            self._judge(form, step)
        else:
            form.add_tape(step.tape)
            if form.watched == _MOST_WATCHED and not form.is_confirmed:
                self._give_up(form)

    def _judge(self, form: StepForm, step: PlannedStep) -> None:
        """Forgets a plan that steps do not follow."""
        self.steps_planned += 1
        self.steps_departed += bool(step.departure)
        form.add_departure(step.departure)
        if form.plan is None and form.plans >= _MOST_PLANS:
            self._give_up(form)

    def _give_up(self, form: StepForm) -> None:
        form.is_plain = self._is_explained = True
        capacity = find_capacity(self._capacity, self._share, form.peak)
        _warn(
            "the module does something else in each step, so no plan can be followed; steps run as they are, "
            f"with a peak of {form.peak} bytes in a capacity of {capacity}"
        )

    def _plan(self, form: StepForm) -> None:
        """Plans the steps of a form by its tape."""
        tape = form.tape
        assert tape is not None
        peak = max(tape.level(), default=0)
        capacity = find_capacity(self._capacity, self._share, peak)
        rate = None if self._store is None else self._store.rate
        problem = EagerProblem(tape, rate)
        try:
            start, choice = find_choice(problem, capacity, self._time_limit, lambda: self._starts(problem, capacity))
        except DoesNotFit as error:
            form.refuse(error)
            self._is_explained = True
            raise
        layout = problem.lay_out(choice.kept, capacity)
        form.plans += 1
        form.is_plain = not (layout.dropped or layout.swapped)
        form.plan = None if form.is_plain else StepPlan(tape, layout, problem)
        self.reports.append(_report(problem, layout, choice, start, peak, capacity, form.reason))

    def _starts(self, problem: EagerProblem, capacity: int) -> dict[str, Collection[int]]:
        """Where the search begins: for each start its name, and the choice."""
        starts: dict[str, Collection[int]] = {"everything": saved_values(problem), "nothing": last_options(problem)}
        if self._scheduler is None or not problem.options:
            return starts
        net = EagerNet(problem)
        room = capacity - problem.outside_bytes
        machine = machine_text(problem.rate)
        try:
            found = schedule(
                net, machine=machine, capacity=max(room, 1), scheduler=self._scheduler, time_limit=self._time_limit
            )
        except NoSchedule:
            return starts
        return {self._scheduler: net.choice(found.classes)} | starts

    def close(self) -> None:
        """Lets later steps run as they are; what autograd has saved stays valid."""
        self._drop_step()
        if self._store is not None:
            self._store.close()

    def warn_of_no_plan(self) -> None:
        """Warns if nothing was planned, and why."""
        if self.reports or self._is_explained:
            return
        if self._is_recomputed:
            _warn("checkpoints compute the whole module again, so no step was planned; without them `fit` decides what runs again")
            return
        _warn("no step was planned in the block: a plan needs two steps of the module that do the same; the peak is unknown")


def _report(
    problem: EagerProblem, layout: Layout, choice: Choice, start: str, peak: int, capacity: int, reason: str
) -> FitReport:
    names = {unit.number: unit_name(problem, unit.number) for unit in problem.units}
    swapped = [names[number] for number in sorted(layout.swapped)]
    kept = [
        names[unit.number] for unit in problem.units if unit.is_saved and unit.number not in layout.dropped | layout.swapped
    ]
    return FitReport(
        capacity, choice.peak, peak, layout.recompute_seconds, start, kept, [names[number] for number in layout.rerun],
        swapped, layout.copied_bytes, layout.wait_seconds, reason,
    )  # fmt: skip


def unit_name(problem: EagerProblem, number: int) -> str:
    """The name of a unit: its operation and its place in the step, `convolution:3`."""
    index = problem.units[number].program[0]
    packet = str(problem.tape.events[index].operation).removeprefix("aten.").split(".")[0]
    return f"{packet}:{index}"


def _warn(message: str) -> None:
    warnings.warn(f"planlab.torch.fit: {message}", stacklevel=3)


@contextmanager
def fit_module(module: Any, planner: EagerPlanner) -> Iterator[EagerPlanner]:
    """Plans the steps of a module in the block."""
    if _thread.planner is not None:
        raise RuntimeError("a block of `fit` is inside of another")
    saved = torch.autograd.graph.saved_tensors_hooks(planner.pack, planner.unpack)
    with ExitStack() as stack:
        stack.callback(planner.close)
        begin = module.register_forward_pre_hook(ModuleHook(planner.begin_step), with_kwargs=True)
        stack.callback(begin.remove)
        end = module.register_forward_hook(ModuleHook(planner.end_forward), always_call=True)
        stack.callback(end.remove)
        _thread.planner = planner
        stack.callback(setattr, _thread, "planner", None)
        with dispatch_mode(planner.dispatch), saved:
            yield planner
        planner.warn_of_no_plan()
