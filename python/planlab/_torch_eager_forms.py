"""The forms of a module's steps: which steps do the same, and what is known of them."""

from __future__ import annotations

import enum
from collections import deque
from typing import Any

from ._torch_budget import DoesNotFit
from ._torch_eager_steps import StepPlan
from ._torch_eager_tape import Tape
from ._torch_joint import require_torch

torch: Any = require_torch("planlab.torch.fit")
_WINDOW = 4
_DEPARTURES = 2
# Another number with a fraction rarely makes another step, and may come with every step.
_CHOICES = (bool, int, str, enum.Enum, torch.dtype, torch.device, torch.layout, torch.memory_format)
_DEVICES = ("cpu", "cuda")


class StepForm:
    """The steps with one form of inputs, and what is known of them."""

    def __init__(self) -> None:
        self.watched = 0
        self.plans = 0
        self.peak = 0
        """The most bytes of a watched step that were live at once."""
        self.tape: Tape | None = None
        self.is_confirmed = False
        """Whether two steps had the same tape."""
        self.plan: StepPlan | None = None
        self.is_plain = False
        """Whether steps run as they are: they fit, or they differ each time."""
        self.refusal: tuple[str, int] | None = None
        """The message and the least peak of the DoesNotFit that planning ended with."""
        self.reason = "first steps"
        self._departures: deque[bool] = deque(maxlen=_WINDOW)
        """Whether each of the last planned steps left its plan."""

    def add_tape(self, tape: Tape) -> None:
        """Takes the tape of a watched step."""
        self.watched += 1
        self.peak = max(self.peak, *tape.level(), 0)
        self.is_confirmed = self.tape is not None and tape.matches(self.tape)
        if self.is_confirmed and self.tape is not None:
            for event, before in zip(tape.events, self.tape.events, strict=True):
                event.seconds = min(event.seconds, before.seconds)
        self.tape = tape

    def add_departure(self, departure: str) -> None:
        """Takes where a planned step left the plan; it is empty if the step followed."""
        self._departures.append(bool(departure))
        if sum(self._departures) >= _DEPARTURES:
            self._forget_plan(departure)

    def _forget_plan(self, departure: str) -> None:
        """Has the next steps watched and planned again."""
        self.plan, self.tape, self.is_confirmed = None, None, False
        self.watched = 0
        self._departures.clear()
        self.reason = f"the step changed at {departure}"

    def refuse(self, error: DoesNotFit) -> None:
        """Has later steps of the form refused with the same error."""
        self.refusal = (str(error), error.least)

    def check_refusal(self) -> None:
        """Raises DoesNotFit if planning ended with it."""
        if self.refusal is not None:
            raise DoesNotFit(*self.refusal)


def step_key(module: Any, args: Any, kwargs: Any) -> Any:
    """What the steps of one form have in common before they begin."""
    parameters = list(module.parameters())
    return (
        _describe_value((args, kwargs)),
        tuple(part.training for part in module.modules()),
        tuple((parameter.requires_grad, parameter.device) for parameter in parameters),
        sum(parameter.grad is None for parameter in parameters),
        tuple((torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)) for device in _DEVICES),
    )


def _describe_value(value: Any) -> Any:
    """What can be known of an argument before the step: shapes and settings, but no content of tensors."""
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype, value.layout, value.device, value.requires_grad
    if isinstance(value, (tuple, list)):
        return type(value), tuple(map(_describe_value, value))
    if isinstance(value, dict):
        return tuple((key, _describe_value(element)) for key, element in value.items())
    return (type(value), value) if isinstance(value, _CHOICES) else type(value)
