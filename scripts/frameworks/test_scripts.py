"""Tests that do not need a framework: `python3 -m unittest discover scripts/frameworks`, a part of `just test`."""

import argparse
import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import bench
import budget
import cells
import same_as_profiler


class TheFileOfRows(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = Path(self.folder.name) / "frameworks.jsonl"

    def row(self, cell: str, status: str = "complete") -> str:
        return json.dumps({"cell": cell, "repetition": 0, "status": status}) + "\n"

    def read(self) -> tuple:
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            return bench.Rows(self.file), said.getvalue()

    def test_rows_that_are_there_are_known_and_failed_ones_are_tried_again(self):
        self.file.write_text(self.row("a") + self.row("b", "failed") + self.row("c", "out-of-memory"))
        rows, said = self.read()
        self.assertEqual((set(rows.there), said), ({("a", 0), ("c", 0)}, ""))

    def test_a_line_that_was_cut_short_is_dropped_and_the_next_row_is_whole(self):
        self.file.write_text(self.row("a") + self.row("b")[:9])
        rows, said = self.read()
        self.assertIn("a last line of 9 bytes was cut short", said)
        rows.append({"cell": "c", "repetition": 0, "status": "complete"})
        self.assertEqual(self.read()[0].there, rows.there)
        self.assertEqual(set(rows.there), {("a", 0), ("c", 0)})

    def test_a_line_that_is_no_row_ends_with_its_number(self):
        self.file.write_text(self.row("a") + "{}\n")
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit) as end:
            bench.Rows(self.file)
        self.assertEqual(end.exception.code, 2)
        self.assertIn("frameworks.jsonl:2: ", said.getvalue())


class Processes(unittest.TestCase):
    def test_the_last_line_counts_and_a_failure_has_its_reason(self):
        echo = [sys.executable, "-c", "print('noise'); print('{\"a\": 1}')"]
        self.assertEqual(bench.process(echo, {}), {"a": 1})
        with self.assertRaisesRegex(bench.Failed, "exit code 3: no memory"):
            bench.process([sys.executable, "-c", "import sys; print('no\\nmemory', file=sys.stderr); sys.exit(3)"], {})

    def test_of_several_plans_the_highest_is_told_and_their_times_are_summed(self):
        plans = [{"height": 9, "load": 8, "planning_seconds": 0.25}, {"height": 5, "load": 5, "planning_seconds": 0.5}]
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.json"
            self.assertEqual(set(bench.planned(report).values()), {None})
            report.write_text(json.dumps({"requests": 20, "planned": 10, "plans": plans}))
            told = bench.planned(report)
        names = ("requests", "planned", "plans", "planning_ns", "plan_height", "plan_load")
        self.assertEqual(told, dict(zip(names, (20, 10, 2, 750_000_000, 9, 8))))


class Cells(unittest.TestCase):
    def test_a_turn_through_all_lengths_is_timed_as_a_whole(self):
        for cell in cells.all_cells():
            turn = cells.LENGTHS if cell.net == "seq2seq" else 1
            self.assertEqual((cell.warm_up() % turn, cell.timed() % turn), (0, 0), cell)
            self.assertGreaterEqual(cell.timed() // turn, cells.TIMED_LEAST, cell)

    def test_no_cell_comes_twice_and_inference_of_all_nets_comes_first(self):
        every = cells.all_cells()
        self.assertEqual(len(set(every)), len(every))
        first = every[: len(cells.SECONDS_OF_16)]
        self.assertEqual({cell.stage for cell in first}, {"infer-b16"})


class Budgets(unittest.TestCase):
    installed = budget.Installed("python", "torch-2.15.0", "digest")

    def cells(self, *words: str) -> list:
        options = {"quick": False, "net": None, "contender": None}
        return budget.list_cells(argparse.Namespace(**options | dict(zip(words[::2], words[1::2]))))

    def test_each_net_begins_with_no_limit_and_no_row_has_the_key_of_another(self):
        cells = self.cells()
        keys = {cell.key(self.installed, "host") for cell in cells}
        self.assertEqual(len(keys), len(cells))
        first = {net: next(cell for cell in cells if cell.net == net).contender for net in budget.BATCHES}
        self.assertEqual(set(first.values()), {budget.UNCONSTRAINED})
        self.assertLess(len(self.cells("quick", True)), len(cells) / 4)

    def test_only_rows_of_ours_depend_on_the_package(self):
        other = self.installed._replace(package="other")
        changed = {
            cell.contender.name
            for cell in self.cells("net", ["gpt"])
            if cell.key(self.installed, "host") != cell.key(other, "host")
        }
        self.assertEqual(changed, {"planlab/compiled", "planlab/eager", "planlab/eager-link"})

    def test_named_contenders_come_with_the_one_that_has_no_limit(self):
        cells = self.cells("net", ["lstm"], "contender", ["torch/dp"])
        names = {cell.contender.name for cell in cells}
        self.assertEqual(names, {"unconstrained", "torch/dp"})
        settings = [cell.contender.settings() for cell in cells]
        self.assertEqual(settings, ["", *(f"budget={share}" for share in budget.BUDGETS)])

    def test_capacity_is_a_share_of_what_was_counted_with_no_limit(self):
        ours = budget.Contender("planlab/eager", share=0.6)
        plain = {"status": "complete", "budget": {"counted_peak": 1001}}
        self.assertEqual(budget.find_capacity(ours, plain), 600)
        self.assertIsNone(budget.find_capacity(budget.Contender("torch/dp", budget=0.5), None))
        for unknown in (None, plain | {"status": "failed"}):
            with self.assertRaises(bench.Failed):
                budget.find_capacity(ours, unknown)

    def test_the_command_has_what_the_contender_was_given(self):
        contender = budget.Contender("planlab/eager-link", share=0.6, link="1GB/s")
        words = budget.Cell("gpt", 4, contender, 2.0).command("python", 600)
        given = dict(zip(words[2::2], words[3::2]))
        self.assertEqual([given[f"--{name}"] for name in ("net", "capacity", "link")], ["gpt", "600", "1GB/s"])
        self.assertNotIn("--budget", given)

    def test_the_digest_of_a_package_covers_its_modules(self):
        with tempfile.TemporaryDirectory() as folder:
            module, other = Path(folder) / "a.py", Path(folder) / "notes.txt"
            module.write_text("one")
            first = budget.digest_package(Path(folder))
            other.write_text("two")
            self.assertEqual(budget.digest_package(Path(folder)), first)
            module.write_text("three")
            self.assertNotEqual(budget.digest_package(Path(folder)), first)


class TheProfiler(unittest.TestCase):
    def test_what_the_trace_has_besides_is_left_over(self):
        profiler = [(0xA, 8192), (0xB, 4096), (0xA, -8192), (0xA, 4096)]
        trace = [("1", 8192), ("2", 5000), ("3", 4096), ("1", -8192), ("2", -5000), ("4", 4096)]
        left, kept, missing = same_as_profiler.matched(profiler, trace)
        self.assertEqual((left, missing), ([5000, -5000], None))
        self.assertEqual(same_as_profiler.paired(kept), same_as_profiler.paired(profiler))

    def test_a_free_of_another_request_and_a_missing_one_are_seen(self):
        profiler = [(0xA, 4096), (0xB, 4096), (0xA, -4096)]
        other = [("1", 4096), ("2", 4096), ("2", -4096)]
        _, kept, missing = same_as_profiler.matched(profiler, other)
        self.assertIsNone(missing)
        self.assertNotEqual(same_as_profiler.paired(kept), same_as_profiler.paired(profiler))
        self.assertEqual(same_as_profiler.matched(profiler, other[:2])[2], -4096)


if __name__ == "__main__":
    unittest.main()
