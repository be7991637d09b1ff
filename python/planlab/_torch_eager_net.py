"""A training net out of the tape of a step, for the schedulers."""

from __future__ import annotations

from collections.abc import Mapping

from ._torch_eager_plan import EagerProblem
from ._torch_net import FeatureMap, Function, TrainingNet


class EagerNet:
    """The net of a tape: a function and a map for each unit; map 0 stands for all that exists before the step."""

    def __init__(self, problem: EagerProblem) -> None:
        self._problem = problem
        self._maps = [FeatureMap("input", 1, 0.0)]
        self._functions: list[Function] = []
        for unit in problem.units:
            self._maps.append(FeatureMap(str(unit.number), max(unit.bytes, 1), 0.0))
            function = Function(str(unit.number), "other", self._inputs(unit.parents), unit.number + 1)
            function.forward_seconds, function.backward_seconds = unit.seconds, 0.0
            self._functions.append(function)
        self._consumers = [self._consumer(number) for number in range(len(problem.tape.saves))]
        self._add_needs()
        self._add_backward_seconds()

    def write(self) -> str:
        """The net as JSON Lines."""
        return TrainingNet("step", 1, 0, self._maps, self._functions).write()

    def choice(self, classes: Mapping[int, str]) -> frozenset[int]:
        """The choice that a schedule makes, by its class of each map."""
        chosen = set[int]()
        for number, options in self._problem.options.items():
            wanted = {"keep": frozenset((number,)), "swap": frozenset((~number,))}.get(classes.get(number + 1, ""))
            chosen |= wanted if wanted is not None and wanted in options else options[-1]
        return frozenset(chosen)

    def _inputs(self, storages: tuple[int, ...]) -> list[int]:
        owners = [self._problem.owners.get(storage) for storage in storages]
        maps = [0 if owner is None else owner.number + 1 for owner in owners]
        return list(dict.fromkeys(maps)) or [0]

    def _consumer(self, save: int) -> int:
        """The function whose backward pass asks for a saved value."""
        record = self._problem.tape.saves[save]
        owner = self._problem.owners.get(record.storage)
        for event in self._problem.tape.events[record.packed :]:
            if event.fresh and not event.is_backward:
                reader = self._problem.owners[event.fresh[0]]
                if owner is None or record.storage in reader.parents:
                    return reader.number
                break
        return len(self._functions) - 1 if owner is None else owner.number

    def _add_needs(self) -> None:
        for consumer, save in zip(self._consumers, self._problem.tape.saves, strict=True):
            owner = self._problem.owners.get(save.storage)
            if owner is None or owner.number > consumer:
                continue
            function, needed = self._functions[consumer], owner.number + 1
            if needed != function.output and needed not in function.inputs:
                function.inputs.append(needed)
            if needed not in function.needs:
                function.needs.append(needed)

    def _add_backward_seconds(self) -> None:
        """Counts each operation of the backward pass for the function that asked for a saved value last."""
        current = self._functions[-1]
        for event in self._problem.tape.events:
            if event.save >= 0:
                current = self._functions[self._consumers[event.save]]
            elif event.is_backward and current.backward_seconds is not None:
                current.backward_seconds += event.seconds
