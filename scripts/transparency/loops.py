"""Loops like those of Python benchmarks: bodies in space, JSON, dictionaries, strings, sorting. Prints a digest.

They take some seconds, so that the start of `planlab run` (10 ms) does not decide.
"""

import hashlib
import json
import math


def bodies(steps: int) -> list:
    state = [[math.sin(n), math.cos(n), n / 10, 0.0, 0.0, 0.0, 1.0 + n / 7] for n in range(5)]
    for _ in range(steps):
        for at, one in enumerate(state):
            for other in state[at + 1 :]:
                apart = [one[axis] - other[axis] for axis in range(3)]
                pull = 0.001 / (sum(x * x for x in apart) + 0.01) ** 1.5
                for axis in range(3):
                    one[3 + axis] -= apart[axis] * other[6] * pull
                    other[3 + axis] += apart[axis] * one[6] * pull
        for one in state:
            for axis in range(3):
                one[axis] += 0.001 * one[3 + axis]
    return state


def texts(rounds: int) -> int:
    document = {"rows": [{"id": n, "name": f"row {n}", "values": list(range(n % 50))} for n in range(2000)]}
    total = 0
    for _ in range(rounds):
        total += len(json.dumps(json.loads(json.dumps(document)), sort_keys=True))
    return total


def tables(rounds: int) -> int:
    total = 0
    for round_ in range(rounds):
        table = {f"key {n}": [n] * (n % 9) for n in range(50_000)}
        total += sum(map(len, table.values())) + len(sorted(table, key=lambda key: key[::-1])[round_])
    return total


results = [bodies(120_000), texts(72), tables(48)]
print(hashlib.sha256(repr(results).encode()).hexdigest())
