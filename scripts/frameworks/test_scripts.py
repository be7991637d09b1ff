"""Tests that do not need a framework: `python3 -m unittest discover scripts/frameworks`, a part of `just test`."""

import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import bench
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
        self.file.write_text(self.row("a") + self.row("b", "failed"))
        rows, said = self.read()
        self.assertEqual((rows.there, said), ({("a", 0)}, ""))

    def test_a_line_that_was_cut_short_is_dropped_and_the_next_row_is_whole(self):
        self.file.write_text(self.row("a") + self.row("b")[:9])
        rows, said = self.read()
        self.assertIn("a last line of 9 bytes was cut short", said)
        rows.append({"cell": "c", "repetition": 0, "status": "complete"})
        self.assertEqual(self.read()[0].there, {("a", 0), ("c", 0)})

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
