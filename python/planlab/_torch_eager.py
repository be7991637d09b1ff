"""Trains a module without compilation within a number of bytes: watches two steps, plans, and follows the plan."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from ._scheduling import NoSchedule, schedule
from ._torch_budget import Choice, find_choice, last_options, saved_values
from ._torch_eager_net import EagerNet
from ._torch_eager_plan import EagerProblem, Layout
from ._torch_eager_saved import SavedTensor
from ._torch_eager_steps import PlannedStep, Step, StepPlan, WatchedStep, is_in_backward
from ._torch_eager_store import HostStore
from ._torch_eager_tape import Tape, tensors_in
from ._torch_joint import require_torch
from ._torch_live import dispatch_mode
from ._torch_report import FitReport, find_capacity, machine_text

torch: Any = require_torch("planlab.torch.fit")
_MOST_WATCHED = 6
_MOST_PLANS = 4
_MOST_FORMS = 16
_DEPARTURES = 2
_active: list[EagerPlanner] = []


class StepForm:
    """The steps with one form of inputs, and what is known of them."""

    def __init__(self) -> None:
        self.watched = 0
        self.plans = 0
        self.departures = 0
        self.tape: Tape | None = None
        self.is_confirmed = False
        """Whether two steps had the same tape."""
        self.plan: StepPlan | None = None
        self.is_plain = False
        """Whether steps run as they are: they fit, or they differ each time."""
        self.reason = "first steps"

    def add_tape(self, tape: Tape) -> None:
        """Takes the tape of a watched step."""
        self.watched += 1
        self.is_confirmed = self.tape is not None and tape.matches(self.tape)
        if self.is_confirmed and self.tape is not None:
            for event, before in zip(tape.events, self.tape.events, strict=True):
                event.seconds = min(event.seconds, before.seconds)
        self.tape = tape

    def forget_plan(self, departure: str) -> None:
        """Has the next steps watched and planned again."""
        self.plan, self.tape, self.is_confirmed = None, None, False
        self.watched = self.departures = 0
        self.reason = f"the step changed at {departure}"


class EagerPlanner:
    """Keeps the peak of each step of a module within a capacity; `fit` makes one.

    The first two steps of each form of inputs run as they are, and are recorded. If they did the same, the third one begins
    with a plan: what stays, what goes to the host, what is computed again. A step begins with the forward pass of the module
    and ends with the first backward pass.
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
        self._awaits_end = False

    @property
    def copied_bytes(self) -> int:
        """What was copied to the host and back so far."""
        return 0 if self._store is None else self._store.copied_bytes

    def begin_step(self, module: Any, args: Any, kwargs: Any) -> None:
        """Begins a step before the forward pass of the module, unless that belongs to the step under way.

        Raises DoesNotFit if the steps of this form do not fit.
        """
        if not torch.is_grad_enabled() or is_in_backward() or (self._step is not None and self._step.live_saves > 0):
            return
        self._step = None
        self._form = form = self._form_of(module, args, kwargs)
        if form is None or form.is_plain:
            return
        with self._own_operations():
            if form.plan is None and form.is_confirmed:
                self._plan(form)
        if not form.is_plain:
            self._step = WatchedStep() if form.plan is None else PlannedStep(form.plan, self._store)
            self._awaits_end = True

    def _form_of(self, module: Any, args: Any, kwargs: Any) -> StepForm | None:
        shapes = tuple((tuple(tensor.shape), tensor.dtype) for tensor in tensors_in((args, kwargs)))
        empty = sum(parameter.grad is None for parameter in module.parameters())
        key = (shapes, module.training, empty, torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda"))
        if key in self._forms or len(self._forms) < _MOST_FORMS:
            return self._forms.setdefault(key, StepForm())
        if not self._has_more_forms:
            self._has_more_forms = True
            _warn(f"the module gets inputs of more than {_MOST_FORMS} forms; steps of further forms run as they are")
        return None

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
        step = self._step
        # Autograd detaches what it hands out, which takes no memory.
        if step is None or self._is_own or operation is torch.ops.aten.detach.default:
            return operation(*args, **kwargs)
        if self._awaits_end and is_in_backward():
            self._await_end(step)
        return step.run(operation, args, kwargs)

    def _await_end(self, step: Step) -> None:
        self._awaits_end = False
        torch.autograd.Variable._execution_engine.queue_callback(lambda: self._end_step(step))

    def pack(self, tensor: Any) -> SavedTensor:
        """What autograd holds in the place of a tensor that it saves."""
        with self._own_operations():
            if self._step is None or is_in_backward():
                return SavedTensor(tensor)
            return self._step.save(tensor)

    def unpack(self, saved: SavedTensor) -> Any:
        """The tensor that autograd saved."""
        step = self._step
        if step is not None and self._awaits_end and is_in_backward():
            self._await_end(step)
        with self._own_operations():
            return saved.restore()

    def _end_step(self, step: Step) -> None:
        if step is not self._step:
            return
        self._step = None
        step.close()
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
        form.departures = form.departures + 1 if step.departure else 0
        if form.departures < _DEPARTURES:
            return
        form.forget_plan(step.departure)
        if form.plans >= _MOST_PLANS:
            self._give_up(form)

    def _give_up(self, form: StepForm) -> None:
        form.is_plain = True
        _warn("the module does something else in each step, so no plan can be followed; steps run as they are")

    def _plan(self, form: StepForm) -> None:
        """Plans the steps of a form by its tape."""
        tape = form.tape
        assert tape is not None
        peak = max(tape.level(), default=0)
        capacity = find_capacity(self._capacity, self._share, peak)
        rate = None if self._store is None else self._store.rate
        problem = EagerProblem(tape, rate)
        start, choice = find_choice(problem, capacity, self._time_limit, lambda: self._starts(problem, capacity))
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
        if self._step is not None:
            self._step.close()
        self._step = None
        if not self.reports:
            _warn(
                "no step was planned in the block: a plan needs two steps of the module that do the same; the peak is unknown"
            )


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
    if _active:
        raise RuntimeError("a block of `fit` is inside of another")
    _active.append(planner)
    hook = module.register_forward_pre_hook(planner.begin_step, with_kwargs=True)
    hooks = torch.autograd.graph.saved_tensors_hooks(planner.pack, planner.unpack)
    try:
        with dispatch_mode(planner.dispatch), hooks:
            yield planner
        planner.close()
    finally:
        hook.remove()
        _active.remove(planner)
