"""Plans of arrays: what comes back, and what is refused."""

import json
import math
import random
import unittest

import numpy as np

import planlab

LOWER, UPPER, SIZE = [0, 1, 2], [3, 2, 5], [4096, 1024, 4096]


def overlaps(lower, upper, size, offsets):
    """Pairs of buffers that are live together and share bytes, by comparing each pair."""
    rows = [tuple(map(int, row)) for row in zip(lower, upper, size, offsets)]
    return [
        (i, j)
        for i, (begin, end, bytes_, offset) in enumerate(rows)
        for j, (other_begin, other_end, other_bytes, other) in enumerate(rows[:i])
        if begin < other_end and other_begin < end and offset < other + other_bytes and other < offset + bytes_
    ]


class Plans(unittest.TestCase):
    def test_a_plan_has_offsets_height_bound_and_whether_it_is_proved(self):
        plan = planlab.plan(LOWER, UPPER, SIZE)
        self.assertEqual((plan.height, plan.bound, plan.load, plan.proved), (8192, 8192, 8192, True))
        self.assertEqual((plan.gap, plan.fragmentation, plan.stop), (0, 0, "proved"))
        self.assertEqual(plan.offsets.dtype, np.uint64)
        self.assertEqual(overlaps(LOWER, UPPER, SIZE, plan.offsets), [])
        self.assertGreaterEqual(plan.seconds, 0)

    def test_lists_and_arrays_of_any_integer_type_are_the_same(self):
        expected = planlab.plan(LOWER, UPPER, SIZE, threads=1).offsets.tolist()
        for kind in (np.int16, np.uint16, np.int32, np.uint64, np.int64, ">i4", object):
            columns = [np.array(column, dtype=kind) for column in (LOWER, UPPER, SIZE)]
            self.assertEqual(planlab.plan(*columns, threads=1).offsets.tolist(), expected, kind)
        strided = [np.repeat(column, 2)[::2] for column in (LOWER, UPPER, SIZE)]
        self.assertEqual(planlab.plan(*strided, threads=1).offsets.tolist(), expected)
        tuples = [tuple(column) for column in (LOWER, UPPER, SIZE)]
        self.assertEqual(planlab.plan(*tuples, threads=1).offsets.tolist(), expected)

    def test_random_problems_have_valid_plans(self):
        draw = random.Random(1)
        for _ in range(100):
            count = draw.randrange(30)
            lower = [draw.randrange(40) for _ in range(count)]
            upper = [low + draw.randint(1, 12) for low in lower]
            size = [draw.randint(1, 200) for _ in range(count)]
            alignment = [draw.randint(1, 16) for _ in range(count)]
            plan = planlab.plan(lower, upper, size, alignment, time_limit=0.05)
            self.assertEqual(overlaps(lower, upper, size, plan.offsets), [])
            self.assertTrue(all(o % a == 0 for o, a in zip(plan.offsets.tolist(), alignment)))
            tops = [o + s for o, s in zip(plan.offsets.tolist(), size)]
            self.assertEqual(plan.height, max(tops, default=0))
            self.assertLessEqual(plan.bound, plan.height)
            self.assertEqual(plan.proved, plan.bound == plan.height)

    def test_no_buffers_need_no_memory(self):
        plan = planlab.plan([], [], [])
        self.assertEqual((plan.height, len(plan.offsets), plan.gap), (0, 0, 0))

    def test_one_alignment_may_be_for_all(self):
        plan = planlab.plan([0, 0, 0], [1, 1, 1], [100, 100, 100], alignment=64)
        self.assertEqual(sorted(plan.offsets.tolist()), [0, 128, 256])

    def test_pins_are_kept(self):
        for pins in ([-1, 8192, -1], [None, 8192, None], np.array([-1, 8192, -1])):
            plan = planlab.plan(LOWER, UPPER, SIZE, pins=pins)
            self.assertEqual((plan.offsets[1], plan.height), (8192, 9216))

    def test_steps_may_be_nanoseconds(self):
        base = 1_700_000_000_000_000_000
        plan = planlab.plan([base, base + 5], [base + 5, base + 9], [64, 32])
        self.assertEqual((plan.height, plan.offsets.tolist()), (64, [0, 0]))
        signed = planlab.plan([-(2**63), -1], [0, 2**63 - 1], [64, 32])
        self.assertEqual(signed.height, 96)

    def test_equal_work_gives_equal_plans(self):
        trace = planlab.read("chainer/alexnet/train/b32")
        ask = {"threads": 1, "work_limit": 100_000, "time_limit": math.inf, "seed": 3}
        plans = [planlab.plan(trace.lower, trace.upper, trace.size, **ask) for _ in range(2)]
        self.assertEqual(plans[0].offsets.tolist(), plans[1].offsets.tolist())

    def test_a_plan_can_be_written_as_json(self):
        text = json.dumps(planlab.plan(LOWER, UPPER, SIZE).to_dict())
        self.assertEqual(json.loads(text)["height"], 8192)


class Capacities(unittest.TestCase):
    def test_a_capacity_is_kept(self):
        plan = planlab.plan(LOWER, UPPER, SIZE, capacity=9216)
        self.assertLessEqual(plan.height, 9216)

    def test_what_cannot_fit_is_infeasible(self):
        with self.assertRaisesRegex(planlab.Infeasible, "every plan needs 8192 bytes") as caught:
            planlab.plan(LOWER, UPPER, SIZE, capacity=8191)
        self.assertEqual(caught.exception.bound, 8192)

    def test_a_planner_that_finds_none_says_so(self):
        with self.assertRaisesRegex(planlab.NoPlan, "needs 9216 bytes") as caught:
            planlab.plan(LOWER, UPPER, SIZE, capacity=8192, planner="bump")
        self.assertNotIsInstance(caught.exception, planlab.Infeasible)


class Mistakes(unittest.TestCase):
    def assert_refused(self, word, *columns, **options):
        with self.assertRaisesRegex(ValueError, word):
            planlab.plan(*columns, **options)

    def test_columns_that_are_none(self):
        self.assert_refused("`lower` is 0.5 at buffer 0", [0.5, 1, 2], UPPER, SIZE)
        self.assert_refused("`size` is .* at buffer 1; it has to be a whole number", LOWER, UPPER, [1, "x", 2])
        self.assert_refused("`size` is .*True", LOWER, UPPER, [True, False, True])
        self.assert_refused("`lower` has 2 dimensions", [LOWER], UPPER, SIZE)
        self.assert_refused("`upper` has 0 dimensions", LOWER, 3, SIZE)
        self.assert_refused("`upper` has 2 entries, but `lower` has 3", LOWER, [3, 2], SIZE)
        self.assert_refused("`pin` has 1 entries", LOWER, UPPER, SIZE, pins=[-1])
        self.assert_refused("`align` has 1 entries", LOWER, UPPER, SIZE, alignment=[1])

    def test_numbers_out_of_range(self):
        self.assert_refused("`size` is -1 at buffer 2", LOWER, UPPER, [1, 1, -1])
        self.assert_refused("`size` is 18446744073709551616 at buffer 0", LOWER, UPPER, [2**64, 1, 1])
        self.assert_refused("`lower` is 9223372036854775808 at buffer 1", [0, 2**63, 2], UPPER, SIZE)
        self.assert_refused(r"sum to more than 2\^64 - 1", LOWER, UPPER, [2**64 - 1, 1, 1])

    def test_buffers_that_cannot_be(self):
        self.assert_refused(r"buffer 1: live at steps \[2, 2\)", [0, 2, 2], UPPER, SIZE)
        self.assert_refused("buffer 0: its size is 0", LOWER, UPPER, [0, 1, 1])
        self.assert_refused("buffer 2: its alignment is 0", LOWER, UPPER, SIZE, alignment=[1, 1, 0])
        self.assert_refused("alignment", LOWER, UPPER, SIZE, alignment=0)
        self.assert_refused("pinned at offset -2", LOWER, UPPER, SIZE, pins=[-2, -1, -1])
        self.assert_refused("both are pinned", LOWER, UPPER, SIZE, pins=[0, 0, -1])

    def test_options_out_of_range(self):
        self.assert_refused("`time_limit` is NaN", LOWER, UPPER, SIZE, time_limit=math.nan)
        self.assert_refused("`time_limit` is -1", LOWER, UPPER, SIZE, time_limit=-1.0)
        self.assert_refused("`threads` is 0", LOWER, UPPER, SIZE, threads=0)
        self.assert_refused("`threads` is 1025", LOWER, UPPER, SIZE, threads=1025)
        self.assert_refused("`capacity` is -5", LOWER, UPPER, SIZE, capacity=-5)
        self.assert_refused("`seed` is -1", LOWER, UPPER, SIZE, seed=-1)
        self.assert_refused("`work_limit` is 0", LOWER, UPPER, SIZE, work_limit=0)
        self.assert_refused("there is no planner `best-fitt`", LOWER, UPPER, SIZE, planner="best-fitt")
        with self.assertRaises(TypeError):
            planlab.plan(LOWER, UPPER, SIZE, capacity=1.5)

    def test_what_a_planner_does_not_honour(self):
        refused = []
        for planner in planlab.planners():
            try:
                planlab.plan(LOWER, UPPER, SIZE, pins=[-1, -1, 0], planner=planner, time_limit=1)
            except ValueError as error:
                self.assertIn("pinned offsets", str(error))
                refused.append(planner)
        self.assertTrue(refused)
        self.assertNotIn("portfolio", refused)
