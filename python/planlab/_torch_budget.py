"""Chooses what a compiled training step saves so that its peak fits a capacity, in the least time."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Choice:
    """What is saved, and what that costs."""

    kept: frozenset[int]
    """The steps whose values are saved if the backward pass needs them."""
    peak: int
    """The most bytes of the step that are live at once."""
    excess: int
    """Byte-steps above the capacity: the bytes above it, summed over all steps."""
    seconds: float
    """The time that the backward pass takes to compute values again."""

    def rank(self) -> tuple[int, float]:
        return (self.excess, self.seconds)


class Search:
    """A local search over what to save, by the liveness of the joint graph; `time_limit` is seconds for each start."""

    def __init__(self, joint: JointGraph, capacity: int, time_limit: float) -> None:
        self._joint = joint
        self._capacity = capacity
        self._time_limit = time_limit
        self._deadline = 0.0
        needed = joint.ancestors(joint.gradients, joint.inputs)
        makers = [number for number in sorted(needed) if _is_maker(joint, number)]
        self._fixed = frozenset(number for number in makers if joint.steps[number].is_fixed)
        self.free = [number for number in makers if number not in self._fixed]
        """The steps whose values may be saved or computed again; those of all others are saved."""
        self._known: dict[frozenset[int], Choice] = {}

    def evaluate(self, kept: Iterable[int]) -> Choice:
        chosen = frozenset(kept) | self._fixed
        if (known := self._known.get(chosen)) is None:
            plan = split(self._joint, chosen)
            profile = live_bytes(self._joint, plan)
            excess = sum(live - self._capacity for live in profile if live > self._capacity)
            known = Choice(chosen, max(profile, default=0), excess, self.recompute_seconds(plan))
            self._known[chosen] = known
        return known

    def recompute_seconds(self, plan: Split) -> float:
        """The time of what the backward pass of a plan computes again."""
        ran = set(plan.forward)
        again = (number for number in plan.backward if number in ran)
        return sum(self._joint.steps[number].seconds for number in again)

    def everything(self) -> Choice:
        """The choice to compute nothing again."""
        return self.evaluate(self.free)

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
        best = min(self.everything(), self.evaluate(()), key=lambda choice: choice.peak)
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
        search = Search(self._joint, target, 0.0)
        search._deadline = deadline
        for start in (best.kept, frozenset(self.free), frozenset[int]()):
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
        for number in self.free:
            if self._is_over():
                break
            other = self.evaluate(choice.kept ^ {number})
            if other.excess >= choice.excess:
                continue
            cost = max(other.seconds - choice.seconds, 0.0) if by_time else 0.0
            rate = (choice.excess - other.excess) / (cost + 1e-9)
            if rate > best_rate:
                best, best_rate = other, rate
        return best

    def _fill(self, choice: Choice) -> Choice:
        """Saves values again, those first that take the longest for their bytes, as long as the peak fits."""
        if choice.excess > 0:
            return choice
        for number in sorted(self.free, key=self._seconds_per_byte, reverse=True):
            if self._is_over():
                break
            if number not in choice.kept:
                other = self.evaluate(choice.kept | {number})
                if other.rank() < choice.rank():
                    choice = other
        return choice

    def _seconds_per_byte(self, number: int) -> float:
        size = sum(self._joint.bytes[storage] for storage in self._joint.steps[number].fresh)
        return self._joint.steps[number].seconds / max(size, 1)

    def _exchange(self, choice: Choice) -> Choice | None:
        """A faster choice that saves one value less, and others instead; None if the search finds no such choice."""
        for number in sorted(choice.kept - self._fixed, key=self._seconds_per_byte):
            if self._is_over():
                return None
            other = self._fill(self.evaluate(choice.kept - {number}))
            if other.rank() < choice.rank():
                return other
        return None


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
