"""Traces: files, workloads, frames."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

import numpy as np

import planlab

ROOT = pathlib.Path(__file__).resolve().parents[2]

CSV = """# alignment: 64
id,lower,upper,size,category
x,0,3,4096,activation
y,1,2,1000,workspace
z,2,5,4096,activation
"""


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def test_a_trace_has_the_columns_of_its_file(self):
        trace = planlab.read(self.write("trace.csv", CSV))
        self.assertEqual((len(trace), trace.load), (3, 8192))
        self.assertEqual(trace.ids, ["x", "y", "z"])
        self.assertEqual(trace.categories, ["activation", "workspace", "activation"])
        self.assertEqual(trace.operations, [None] * 3)
        self.assertEqual(trace.size.tolist(), [4096, 1024, 4096])
        self.assertEqual(trace.alignment.tolist(), [64] * 3)
        self.assertEqual((trace.lower.tolist(), trace.upper.tolist()), ([0, 1, 2], [3, 2, 5]))
        self.assertEqual(trace.pins.tolist(), [-1] * 3)
        self.assertEqual(trace.metadata, {"alignment": "64"})
        self.assertIn("3 buffers, load 8192 bytes", repr(trace))
        plan = trace.plan()
        self.assertEqual((plan.height, plan.proved), (8192, True))
        again = planlab.plan(trace.lower, trace.upper, trace.size, trace.alignment)
        self.assertEqual(again.height, plan.height)

    def test_permissions_count_unless_they_are_left_out(self):
        text = "id,lower,upper,size,may_overwrite\nx,0,2,64,\ny,1,3,64,x\n"
        path = self.write("trace.csv", text)
        trace = planlab.read(path)
        plan = trace.plan()
        self.assertEqual((trace.permissions, trace.load, plan.load, plan.height), (1, 64, 64, 64))
        self.assertEqual((plan.hand_overs, plan.to_dict()["hand_overs"]), ([(0, 1)], [(0, 1)]))
        self.assertIn("Live bytes of 2 buffers", trace.to_svg())
        apart = planlab.read(path, in_place=False)
        plan = apart.plan()
        self.assertEqual((apart.permissions, apart.load, plan.height, plan.hand_overs), (0, 128, 128, []))
        self.assertEqual(apart.notices, ["permissions to overwrite a buffer in place were left out: 1"])
        greedy = trace.plan(planner="best-fit")
        self.assertEqual((greedy.height, greedy.bound, greedy.proved, greedy.stop), (128, 64, False, "finished"))
        with self.assertRaisesRegex(ValueError, "`in_place` are for files"):
            planlab.read("chainer/alexnet/infer/b1", in_place=False)

    def test_a_trace_does_not_replace_its_file(self):
        path = self.write("trace.csv", CSV)
        trace = planlab.read(path)
        (self.folder / "link.csv").symlink_to("trace.csv")
        for name in ("trace.csv", "link.csv"):
            with self.assertRaisesRegex(ValueError, "name another file"):
                trace.save(self.folder / name)
        self.assertEqual(path.read_text(), CSV)
        trace.save(self.folder / "other.csv")
        self.assertEqual(planlab.read(self.folder / "other.csv").load, trace.load)

    def test_what_is_neither_file_nor_workload_is_said(self):
        for name in ("missing.csv", "missing.pte", "./missing", "missing.onnx"):
            with self.assertRaises(FileNotFoundError):
                planlab.read(name)
        with self.assertRaisesRegex(ValueError, "there is no file and no workload `runs/missing`"):
            planlab.read("runs/missing")

    def test_options_are_the_command_lines(self):
        path = self.write("t.csv", "id,lower,upper,size\na,0,1,10\nb,1,2,10\n")
        self.assertEqual(planlab.read(str(path)).load, 10)
        self.assertEqual(planlab.read(path, dialect="inclusive").load, 20)
        self.assertEqual(planlab.read(path, alignment=64).load, 64)
        pinned = self.write("p.csv", "# planlab: plan\nid,lower,upper,size,offset\na,0,1,10,30\n")
        self.assertEqual(planlab.read(pinned, pins=True).pins.tolist(), [30])
        with self.assertRaisesRegex(ValueError, "this is a plan, not a trace"):
            planlab.read(pinned)
        with self.assertRaisesRegex(ValueError, "dialect"):
            planlab.read(path, dialect="closed")
        with self.assertRaisesRegex(ValueError, "`alignment` is 0; it has to be 1"):
            planlab.read(path, alignment=0)

    def test_steps_are_those_of_the_file_even_if_they_do_not_fit_32_bits(self):
        base = 1_700_000_000_000_000_000
        trace = planlab.read(self.write("ns.csv", f"id,lower,upper,size\na,{base},{base + 9},10\n"))
        self.assertEqual((trace.lower.tolist(), trace.upper.tolist()), ([base], [base + 9]))

    def test_a_pipe_is_read_once(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_text, args=(CSV,))
        writer.start()
        self.assertEqual(len(planlab.read(pipe)), 3)
        writer.join()

    def test_a_graph_is_read_as_its_live_ranges(self):
        files = sorted((ROOT / "fuzz/corpus/graph").glob("*.jsonl"))
        read = []
        for file in files:
            try:
                read.append(len(planlab.read(file)))
            except ValueError as error:
                self.assertIn(f"{file}:", str(error))
        self.assertTrue(any(count > 0 for count in read))

    def test_what_is_wrong_is_said_with_its_line(self):
        with self.assertRaisesRegex(ValueError, r"bad.csv:1: missing column `size`"):
            planlab.read(self.write("bad.csv", "id,lower,upper\na,0,2\n"))
        with self.assertRaisesRegex(ValueError, r"bad.csv:3:"):
            planlab.read(self.write("bad.csv", "id,lower,upper,size\na,0,2,8\nb,2,2,8\n"))
        with self.assertRaises(FileNotFoundError) as caught:
            planlab.read(self.folder / "none.csv")
        self.assertEqual(caught.exception.filename, str(self.folder / "none.csv"))
        self.assertEqual(caught.exception.strerror, "No such file or directory")
        with self.assertRaises(FileNotFoundError):
            planlab.read("none.csv.zst")
        with self.assertRaises(IsADirectoryError):
            planlab.read(self.folder)


class Samples(unittest.TestCase):
    """Files of other tools, as they are in the repository."""

    def sample(self, name, **options):
        return planlab.read(ROOT / "workloads/data/samples" / name, **options)

    def test_files_of_other_tools_are_recognised(self):
        for name in (
            "torch2.15_nullcuda_snapshot.pickle",
            "jax_mlp.hlo.pb.zst",
            "squeezenet1_0_noweights.onnx",
            "small_cnn.tflite.zst",
        ):
            trace = self.sample(name)
            self.assertGreater(len(trace), 0, name)
            plan = trace.plan(time_limit=2)
            self.assertGreaterEqual(plan.height, plan.bound, name)

    def test_a_part_that_there_is_not_is_named(self):
        with self.assertRaisesRegex(ValueError, "`none`"):
            self.sample("torch2.15_nullcuda_snapshot.pickle", part="none")

    def test_dimensions_have_sizes(self):
        with self.assertRaisesRegex(ValueError, r"dims\['N'\]` is -1"):
            self.sample("squeezenet1_0_noweights.onnx", dims={"N": -1})


class Workloads(unittest.TestCase):
    def test_workloads_are_read_by_their_keys(self):
        trace = planlab.read("chainer/alexnet/infer/b1")
        self.assertEqual(trace.load, 10169344)
        self.assertEqual(trace.metadata["workload"], "chainer/alexnet/infer/b1")
        self.assertGreater(planlab.read("model/squeezenet1-0/infer/b1").load, 0)

    def test_an_unknown_key_names_the_nearest(self):
        with self.assertRaisesRegex(ValueError, "did you mean `chainer/alexnet/infer/b1`"):
            planlab.read("chainer/alexnet/infer/b2")
        with self.assertRaisesRegex(ValueError, "are for files"):
            planlab.read("chainer/alexnet/infer/b1", alignment=64)


class Frames(unittest.TestCase):
    def test_a_frame_has_the_columns_and_the_offsets(self):
        trace = planlab.read("chainer/alexnet/infer/b1")
        plan = trace.plan()
        columns = trace.to_dict(plan)
        self.assertEqual(list(columns)[:4], ["id", "lower", "upper", "size"])
        np.testing.assert_array_equal(columns["offset"], plan.offsets)
        with self.assertRaisesRegex(ValueError, "the plan has 0 offsets, the trace 39 buffers"):
            trace.to_dict(planlab.plan([], [], []))
        libraries = [name for name in ("polars", "pandas") if importlib.util.find_spec(name)]
        if not libraries:
            self.skipTest("neither polars nor pandas is there")
        frame = trace.to_frame(plan)
        self.assertEqual(type(frame).__module__.split(".")[0], libraries[0])
        self.assertEqual(frame.shape, (39, 8))
        self.assertEqual(int((frame["offset"] + frame["size"]).max()), plan.height)
        # And back: a column of a frame is a column of a problem.
        again = planlab.plan(frame["lower"], frame["upper"], frame["size"], frame["alignment"])
        self.assertEqual(again.height, plan.height)

    def test_without_a_library_for_frames_the_error_names_them(self):
        trace = planlab.read("chainer/alexnet/infer/b1")
        with mock.patch.dict(sys.modules, {"polars": None, "pandas": None}):
            with self.assertRaisesRegex(ImportError, "polars or pandas"):
                trace.to_frame()

    def test_columns_in_a_dict_are_a_trace(self):
        columns = {"lower": [0, 1], "upper": np.array([2, 3]), "size": (64, 32), "offset": [None, 64], "id": ["#x", "y,z"]}
        trace = planlab.read(columns, pins=True, alignment=16)
        self.assertEqual((trace.ids, trace.load, trace.source), (["#x", "y,z"], 96, "<builtins.dict>"))
        self.assertEqual((trace.pins.tolist(), trace.alignment.tolist()), ([-1, 64], [16, 16]))
        self.assertEqual(planlab.read({"lower": [0, 1], "upper": [2, 3], "size": [64, 32]}).ids, ["0", "1"])
        alexnet = planlab.read("chainer/alexnet/infer/b1")
        again = planlab.read(alexnet.to_dict())
        self.assertEqual(again.to_dict().keys(), alexnet.to_dict().keys())
        for name, column in alexnet.to_dict().items():
            self.assertEqual(list(again.to_dict()[name]), list(column), name)

    def test_columns_that_are_no_trace_are_refused(self):
        with self.assertRaisesRegex(ValueError, "`lower` has 1, `upper` has 2, `size` has 1"):
            planlab.read({"lower": [0], "upper": [2, 3], "size": [64]})
        with self.assertRaisesRegex(ValueError, "<builtins.dict>:1: missing column `size`"):
            planlab.read({"lower": [0], "upper": [2]})
        with self.assertRaisesRegex(ValueError, "<builtins.dict>:2: .*1.5"):
            planlab.read({"lower": [0], "upper": [2], "size": [1.5]})

    def test_a_frame_is_a_trace(self):
        alexnet = planlab.read("chainer/alexnet/infer/b1")
        done = []
        for library in ("polars", "pandas"):
            if not importlib.util.find_spec(library):
                continue
            module = importlib.import_module(library)
            frame = getattr(alexnet, f"to_{library}")()
            again = planlab.read(frame)
            self.assertEqual((again.ids, again.load), (alexnet.ids, alexnet.load))
            self.assertEqual((again.operations, again.categories), (alexnet.operations, alexnet.categories))
            # A hole in a column of whole numbers.
            columns = {"lower": [0, 1], "upper": [2, 3], "size": [64, 32], "offset": [None, 64]}
            holes = planlab.read(module.DataFrame(columns), pins=True)
            self.assertEqual((holes.pins.tolist(), holes.ids), ([-1, 64], ["0", "1"]))
            with self.assertRaisesRegex(ValueError, "DataFrame>:1: missing column `size`"):
                planlab.read(module.DataFrame({"lower": [0], "upper": [1]}))
            done.append(library)
        if not done:
            self.skipTest("neither polars nor pandas is there")

    def test_a_trace_is_saved_whole(self):
        trace = planlab.read("chainer/alexnet/infer/b1")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "t.csv.zst")
            trace.save(path)
            again = planlab.read(path)
            self.assertEqual((again.ids, again.load, again.metadata), (trace.ids, trace.load, trace.metadata))
            with self.assertRaises(FileNotFoundError):
                trace.save(pathlib.Path(folder, "none", "t.csv"))


class Imports(unittest.TestCase):
    def test_the_package_is_imported_without_what_it_may_use(self):
        code = "import sys, planlab; print(*sorted({'numpy', 'torch', 'jax', 'polars', 'pandas'} & set(sys.modules)))"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(run.stdout.split(), [])
