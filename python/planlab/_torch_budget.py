"""Chooses what a training step saves so that its peak fits a capacity, in the least time."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ._torch_joint import JointGraph
from ._torch_live import Split, live_bytes, split

_MOST_SECONDS_FOR_LEAST = 30.0
# Shares of the peak that saves everything towards which the least peak is searched; a repair that stops above its own
# target often passes below the others.
_TARGETS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1)


class DoesNotFit(RuntimeError):
    """No choice that was found keeps the step within the capacity; `least` is the smallest peak found, in bytes."""

    def __init__(self, message: str, least: int) -> None:
        super().__init__(message)
        self.least = least


class Problem(Protocol):
    """A step with values that may be saved, and what a choice of them costs."""

    fixed: frozenset[int]
    """What every choice contains."""
    options: Mapping[int, Sequence[frozenset[int]]]
    """For each value, by number, its alternatives. A choice contains the members of one; the first one saves the value."""

    def simulate(self, kept: frozenset[int], capacity: int) -> tuple[Sequence[int], float]:
        """The live bytes at each moment of the step, and the seconds that a choice adds.

        The moments of copies may depend on the capacity.
        """
        ...

    def seconds_per_byte(self, number: int) -> float:
        """How long a value takes to compute, for each byte that saving it takes."""
        ...


class JointProblem:
    """What a compiled step saves, by the liveness of its joint graph: a value is saved, or is computed again."""

    def __init__(self, joint: JointGraph) -> None:
        self._joint = joint
        needed = joint.ancestors(joint.gradients, joint.inputs)
        makers = [number for number in sorted(needed) if _is_maker(joint, number)]
        self.fixed = frozenset(number for number in makers if joint.steps[number].is_fixed)
        free = (number for number in makers if number not in self.fixed)
        self.options: Mapping[int, Sequence[frozenset[int]]] = {
            number: (frozenset((number,)), frozenset()) for number in free
        }

    def simulate(self, kept: frozenset[int], capacity: int) -> tuple[Sequence[int], float]:
        plan = split(self._joint, kept)
        return live_bytes(self._joint, plan), recompute_seconds(self._joint, plan)

    def seconds_per_byte(self, number: int) -> float:
        size = sum(self._joint.bytes[storage] for storage in self._joint.steps[number].fresh)
        return self._joint.steps[number].seconds / max(size, 1)


def recompute_seconds(joint: JointGraph, plan: Split) -> float:
    """The time of what the backward pass of a plan computes again."""
    ran = set(plan.forward)
    return sum(joint.steps[number].seconds for number in plan.backward if number in ran)


@dataclass(frozen=True)
class Choice:
    """What is saved, and what that costs."""

    kept: frozenset[int]
    """The members of the options that were chosen, and what is fixed."""
    peak: int
    """The most bytes of the step that are live at once."""
    excess: int
    """Byte-steps above the capacity: the bytes above it, summed over all steps."""
    seconds: float
    """The time that the choice adds to the step."""

    def rank(self) -> tuple[int, float]:
        return (self.excess, self.seconds)


def find_choice(
    problem: Problem, capacity: int, time_limit: float, starts: Callable[[], Mapping[str, Collection[int]]]
) -> tuple[str, Choice]:
    """The best choice within a capacity, and the name of the start that led to it.

    A step that fits as it is saves everything, and `starts` is not called. Raises DoesNotFit.
    """
    search = Search(problem, capacity, time_limit)
    everything = search.everything()
    if everything.excess == 0:
        return "everything", everything
    start, choice = search.best_from(starts())
    if choice.excess == 0:
        return start, choice
    smallest = search.smallest()
    if smallest.excess > 0:
        raise DoesNotFit(
            f"the step does not fit {capacity} bytes: the least peak that was found is {smallest.peak} bytes "
            f"({everything.peak} if it saves everything)",
            smallest.peak,
        )
    return search.best_from({"least peak": smallest.kept})


class Search:
    """A local search over what to save; `time_limit` is seconds for each start."""

    def __init__(self, problem: Problem, capacity: int, time_limit: float) -> None:
        self._problem = problem
        self._capacity = capacity
        self._time_limit = time_limit
        self._deadline = 0.0
        self._known: dict[frozenset[int], Choice] = {}

    def evaluate(self, kept: Iterable[int]) -> Choice:
        chosen = frozenset(kept) | self._problem.fixed
        if (known := self._known.get(chosen)) is None:
            profile, seconds = self._problem.simulate(chosen, self._capacity)
            excess = sum(live - self._capacity for live in profile if live > self._capacity)
            known = Choice(chosen, max(profile, default=0), excess, seconds)
            self._known[chosen] = known
        return known

    def everything(self) -> Choice:
        """The choice to save every value."""
        return self.evaluate(saved_values(self._problem))

    def best_from(self, starts: Mapping[str, Collection[int]]) -> tuple[str, Choice]:
        """The best choice that the search reaches from any of the starts within its time, and the name of that start."""
        reached = {}
        for name, start in starts.items():
            self._deadline = time.monotonic() + self._time_limit
            reached[name] = self._improve(self.evaluate(start))
        return min(reached.items(), key=lambda item: item[1].rank())

    def smallest(self) -> Choice:
        """The choice with the least peak that the search finds by bytes alone, in half a minute at most.

        Neither the capacity nor measured times count, so that it is the same whatever capacity was asked for.
        """
        deadline = time.monotonic() + _MOST_SECONDS_FOR_LEAST
        most = self.everything().peak
        best = min(self.everything(), self.evaluate(last_options(self._problem)), key=lambda choice: choice.peak)
        for share in _TARGETS:
            best = self._descend(best, int(most * share), deadline)
        while time.monotonic() < deadline:
            lower = self._descend(best, best.peak - 1, deadline)
            if lower.peak == best.peak:
                break
            best = lower
        return self.evaluate(best.kept)

    def _descend(self, best: Choice, target: int, deadline: float) -> Choice:
        """The choice with the least peak of the given one and all that are met on the way to a target in bytes."""
        search = Search(self._problem, target, 0.0)
        search._deadline = deadline
        for start in (best.kept, saved_values(self._problem), last_options(self._problem)):
            search._repair(search.evaluate(start), by_time=False)
        return min(search._known.values(), key=lambda choice: choice.peak)

    def _improve(self, choice: Choice) -> Choice:
        """Saves less until the peak fits, then saves more while it fits; then exchanges one value for others."""
        choice = self._fill(self._repair(choice))
        while choice.excess == 0 and not self._is_over():
            exchanged = self._exchange(choice)
            if exchanged is None:
                break
            choice = exchanged
        return choice

    def _is_over(self) -> bool:
        return time.monotonic() >= self._deadline

    def _repair(self, choice: Choice, *, by_time: bool = True) -> Choice:
        while choice.excess > 0 and not self._is_over():
            better = self._steepest(choice, by_time=by_time)
            if better is None:
                break
            choice = better
        return choice

    def _steepest(self, choice: Choice, *, by_time: bool) -> Choice | None:
        """The change of one value that takes the most excess away, for each second or at all."""
        best, best_rate = None, 0.0
        for number in self._problem.options:
            for other in self._alternatives(choice, number):
                if other.excess >= choice.excess:
                    continue
                cost = max(other.seconds - choice.seconds, 0.0) if by_time else 0.0
                rate = (choice.excess - other.excess) / (cost + 1e-9)
                if rate > best_rate:
                    best, best_rate = other, rate
        return best

    def _alternatives(self, choice: Choice, number: int) -> Iterator[Choice]:
        """The choices that differ in one value, until the time is over."""
        options = self._problem.options[number]
        rest = choice.kept.difference(*options)
        for option in options:
            if self._is_over():
                return
            if rest | option != choice.kept:
                yield self.evaluate(rest | option)

    def _fill(self, choice: Choice) -> Choice:
        """Saves values again, those first that take the longest for their bytes, as long as the peak fits."""
        if choice.excess > 0:
            return choice
        for number in sorted(self._problem.options, key=self._problem.seconds_per_byte, reverse=True):
            saved, *others = self._problem.options[number]
            if self._is_over():
                break
            if not saved <= choice.kept:
                other = self.evaluate(choice.kept.difference(*others) | saved)
                if other.rank() < choice.rank():
                    choice = other
        return choice

    def _exchange(self, choice: Choice) -> Choice | None:
        """A faster choice in which one value changes, and others are saved instead; None if there is no such choice."""
        for number in sorted(self._problem.options, key=self._problem.seconds_per_byte):
            if not self._problem.options[number][0] <= choice.kept:
                continue
            for changed in self._alternatives(choice, number):
                other = self._fill(changed)
                if other.rank() < choice.rank():
                    return other
        return None


def saved_values(problem: Problem) -> frozenset[int]:
    """The choice to save every value."""
    return frozenset[int]().union(*(options[0] for options in problem.options.values()))


def last_options(problem: Problem) -> frozenset[int]:
    """The choice to save as little as possible."""
    return frozenset[int]().union(*(options[-1] for options in problem.options.values()))


def _is_maker(joint: JointGraph, number: int) -> bool:
    """Whether the forward pass may save the value of a step that the gradients depend on."""
    step = joint.steps[number]
    if step.is_backward or not step.fresh:
        return False
    # After the forward pass it is too late to read what is overwritten.
    return number in joint.required or any(joint.steps[read].is_overwritten for read in step.reads)


def joint_graph_of(graph: Any, node_info: Any) -> JointGraph:
    """The joint graph that the partitioner splits; it has one gradient for each input."""
    results = next(node for node in graph.nodes if node.op == "output").args[0]
    return JointGraph(graph, len(results) - len(node_info.inputs))
