"""Schedules of training nets: what comes back, and what is refused."""

import copy
import json
import math
import pathlib
import pickle
import re
import tempfile
import unittest

import planlab

MACHINE = """name = "tiny"
copy_out = 1
copy_in = 1
flops = 10
memory = 100
launch = 0.5
capacity = 100000
bytes_per_parameter = 4
workspace = 0
"""
LAYERS = 6
MAP_BYTES = 100


def chain(layers=LAYERS):
    """A net whose functions take 1 second forward and 2 backward, and need their input."""
    lines = [{"planlab": "training-net", "version": 1, "name": "chain", "batch": 1}]
    lines += [{"map": index, "name": f"x{index}", "bytes": MAP_BYTES} for index in range(layers + 1)]
    for index in range(layers):
        function = {"function": index, "name": f"f{index}", "kind": "other", "inputs": [index], "output": index + 1}
        lines.append(function | {"needs": [index], "forward_seconds": 1.0, "backward_seconds": 2.0})
    return "".join(json.dumps(line) + "\n" for line in lines)


def chain_with(**fields):
    """The net with other or further fields in its header."""
    header, *lines = chain().splitlines(keepends=True)
    return "".join([json.dumps(json.loads(header) | fields) + "\n", *lines])


class Schedules(unittest.TestCase):
    def test_net_that_fits_keeps_every_map(self):
        found = planlab.schedule(chain(), machine=MACHINE)
        self.assertEqual(found.classes, {index: "keep" for index in range(LAYERS)})
        self.assertAlmostEqual(found.seconds, 3.0 * LAYERS)
        self.assertEqual((found.bound, found.gap, found.stop), (found.seconds, 0.0, "proved"))
        self.assertLessEqual(found.live_peak, found.height)

    def test_small_capacity_recomputes_over_a_slow_link(self):
        capacity = 6 * MAP_BYTES
        found = planlab.schedule(chain(), machine=MACHINE, capacity=capacity, time_limit=5.0)
        self.assertIn("recompute", found.classes.values())
        self.assertNotIn("swap", found.classes.values())
        self.assertLessEqual(found.height, capacity)
        self.assertGreater(found.seconds, 3.0 * LAYERS)
        self.assertGreaterEqual(found.seconds, found.bound)

    def test_schedule_is_a_file_of_events(self):
        found = planlab.schedule(chain(), machine=MACHINE)
        header, *lines = [json.loads(line) for line in found.text.splitlines()]
        self.assertEqual((header["planlab"], header["net"], header["machine"]), ("schedule", "chain", "tiny"))
        self.assertEqual(sum("engine" in line for line in lines), 2 * LAYERS)

    def test_nets_and_machines_may_be_files(self):
        with tempfile.TemporaryDirectory() as folder:
            net, machine = pathlib.Path(folder, "net.jsonl"), pathlib.Path(folder, "tiny.toml")
            net.write_text(chain())
            machine.write_text(MACHINE)
            found = planlab.schedule(net, machine=machine)
            self.assertEqual(found.classes, planlab.schedule(chain(), machine=MACHINE).classes)

    def test_net_without_a_machine_runs_on_the_default_one(self):
        for name in ("mine", "machine"):
            with self.subTest(name):
                found = planlab.schedule(chain_with(name=name), scheduler="in-core")
                header = json.loads(found.text.splitlines()[0])
                self.assertEqual((header["net"], header["machine"]), (name, "x86-pcie3"))

    def test_capacity_in_a_net_counts_without_a_machine(self):
        with self.assertRaises(planlab.NoSchedule):
            planlab.schedule(chain_with(capacity=MAP_BYTES), time_limit=2.0)

    def test_machine_in_a_net_counts(self):
        found = planlab.schedule(chain_with(machine=MACHINE))
        self.assertEqual(json.loads(found.text.splitlines()[0])["machine"], "tiny")

    def test_objects_that_write_nets_are_nets(self):
        class Written:
            def write(self):
                return chain(2)

        self.assertEqual(len(planlab.schedule(Written(), machine=MACHINE).classes), 2)

    def test_equal_work_limits_have_equal_schedules(self):
        options = {"machine": MACHINE, "capacity": 6 * MAP_BYTES, "work_limit": 200, "time_limit": 60.0, "seed": 3}
        self.assertEqual(planlab.schedule(chain(), **options).text, planlab.schedule(chain(), **options).text)

    def test_number_of_threads_does_not_change_a_schedule(self):
        options = {"machine": MACHINE, "capacity": 6 * MAP_BYTES, "work_limit": 200, "time_limit": 60.0}
        texts = [planlab.schedule(chain(), threads=threads, **options).text for threads in (1, 2, None)]
        self.assertEqual(texts, [texts[0]] * 3)

    def test_capacity_below_one_pass_is_infeasible_at_once(self):
        # A backward pass has its input, the gradient of its output and that of its input.
        least = 3 * MAP_BYTES
        for scheduler in ("joint", "swap-all"):
            options = {"machine": MACHINE, "capacity": least - 1, "scheduler": scheduler, "time_limit": math.inf}
            with self.subTest(scheduler), self.assertRaisesRegex(planlab.InfeasibleSchedule, "pass of `f1`") as caught:
                planlab.schedule(chain(), **options)
            self.assertIn(f"at least {least} bytes, but the capacity is {least - 1}", str(caught.exception))
            self.assertEqual(caught.exception.bound, least)
            found = re.search(r"; (\S+) finds a schedule in (\d+) bytes$", str(caught.exception))
            self.assertEqual(int(found[2]), caught.exception.suggested)
            there = options | {"capacity": caught.exception.suggested, "scheduler": found[1]}
            self.assertLessEqual(planlab.schedule(chain(), **there).height, caught.exception.suggested)

    def test_infeasible_capacity_without_time_has_no_suggestion(self):
        with self.assertRaises(planlab.InfeasibleSchedule) as caught:
            planlab.schedule(chain(), machine=MACHINE, capacity=MAP_BYTES, time_limit=0.0)
        self.assertEqual((caught.exception.bound, caught.exception.suggested), (3 * MAP_BYTES, None))

    def test_infeasible_schedule_is_copied_with_its_numbers(self):
        for suggested in (None, 12):
            error = planlab.InfeasibleSchedule("why", 10, suggested)
            for same in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
                self.assertIsInstance(same, planlab.InfeasibleSchedule)
                self.assertEqual((str(same), same.bound, same.suggested), ("why", 10, suggested))

    def test_wrong_arguments_are_refused(self):
        wrong = [{"scheduler": "hope"}, {"machine": "abacus"}, {"capacity": 0}, {"time_limit": -1.0}, {"seed": -1}]
        for options in (*wrong, {"threads": 0}, {"threads": 100_000}):
            with self.subTest(options), self.assertRaises(ValueError):
                planlab.schedule(chain(), **options)
        with self.assertRaisesRegex(ValueError, "net:2"):
            planlab.schedule('{"planlab":"training-net","version":1,"name":"broken","batch":1}\n{"map":1}\n')
        with self.assertRaises(FileNotFoundError):
            planlab.schedule("missing.jsonl")


if __name__ == "__main__":
    unittest.main()
