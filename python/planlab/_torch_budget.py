"""Chooses what a compiled training step saves so that its peak fits a capacity, in the least time."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ._torch_joint import JointGraph
from ._torch_live import Split, live_bytes, saveable, split

_MOST_SECONDS_FOR_LEAST = 30.0


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
        makers = [number for number in joint.forward if joint.steps[number].fresh and number in needed]
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

    def least_peak(self, choice: Choice) -> int:
        """The smallest peak that the search finds from a choice that does not fit, in half a minute at most."""
        least = min((known.peak for known in self._known.values()), default=choice.peak)
        deadline = time.monotonic() + _MOST_SECONDS_FOR_LEAST
        while True:
            search = Search(self._joint, least - 1, deadline - time.monotonic())
            _, found = search.best_from({"best": choice.kept, "nothing": []})
            if found.excess > 0:
                return least
            choice, least = found, found.peak

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

    def _repair(self, choice: Choice) -> Choice:
        while choice.excess > 0 and not self._is_over():
            better = self._steepest(choice)
            if better is None:
                break
            choice = better
        return choice

    def _steepest(self, choice: Choice) -> Choice | None:
        """The change of one value that takes the most excess away for each second."""
        best, best_rate = None, 0.0
        for number in self.free:
            if self._is_over():
                break
            other = self.evaluate(choice.kept ^ {number})
            if other.excess >= choice.excess:
                continue
            cost = max(other.seconds - choice.seconds, 0.0)
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


def mark_choice(joint: JointGraph, choice: Choice) -> None:
    """Says to the partitioner what to save and what to compute again, in the words of selective checkpointing."""
    from torch.utils.checkpoint import CheckpointPolicy

    plan = split(joint, choice.kept)
    saved = saveable(joint, choice.kept)
    for number in choice.kept:
        joint.steps[number].node.meta["recompute"] = CheckpointPolicy.MUST_SAVE
    for number in plan.backward:
        step = joint.steps[number]
        if not step.is_backward and number not in saved:
            step.node.meta["recompute"] = CheckpointPolicy.MUST_RECOMPUTE


def joint_graph_of(graph: Any, node_info: Any) -> JointGraph:
    """The joint graph that a solver of the partitioner gets; it has one gradient for each input."""
    results = next(node for node in graph.nodes if node.op == "output").args[0]
    return JointGraph(graph, len(results) - len(node_info.inputs))
