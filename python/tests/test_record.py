"""Recordings: of frameworks where they are installed, and of stand-ins for what a test machine lacks."""

import importlib.util
import json
import pathlib
import pickle
import sys
import tempfile
import time
import types
import unittest
from unittest import mock

import planlab
from planlab import _jax

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "workloads/data/samples"


def snapshot_of(*histories):
    """A snapshot with nothing left in use, of one history (address, bytes, +1 or -1) for each device."""
    actions = {1: ["alloc"], -1: ["free_requested", "free_completed"]}
    traces = []
    for history in histories:
        trace = []
        for address, size, direction in history:
            for action in actions[direction]:
                now = time.time_ns() // 1000
                entry = {"action": action, "addr": address, "size": size, "stream": 0, "frames": [], "time_us": now}
                trace.append(entry)
        traces.append(trace)
    return {"segments": [], "device_traces": traces}


class FakeCuda:
    """A PyTorch whose GPU allocates what a test says; the history has PyTorch's form, its content is small."""

    def __init__(self, histories=((),), gpus=1):
        self.calls = []
        self.histories = [list(history) for history in histories]
        self.module = types.ModuleType("torch")
        self.module.__version__ = "2.9.0"
        memory = types.SimpleNamespace(_record_memory_history=self.history, _snapshot=self.snapshot)
        self.module.cuda = types.SimpleNamespace(
            is_available=lambda: gpus > 0, device_count=lambda: gpus, current_device=lambda: 0, memory=memory
        )

    def history(self, enabled="all", context="all", stacks="all", max_entries=sys.maxsize, clear_history=False):
        self.calls.append((enabled, context, stacks, clear_history))

    def snapshot(self):
        self.calls.append("snapshot")
        return snapshot_of(*self.histories)

    def installed(self):
        return mock.patch.dict(sys.modules, {"torch": self.module})


TWO_BUFFERS = [(4096, 1000, 1), (8192, 500, 1), (4096, 1000, -1), (8192, 500, -1)]


class Gpus(unittest.TestCase):
    def record(self, fake, **options):
        with fake.installed(), planlab.record("torch", **options) as recording:
            pass
        return recording

    def test_a_history_becomes_a_trace(self):
        fake = FakeCuda([TWO_BUFFERS])
        recording = self.record(fake)
        self.assertEqual((len(recording.trace), recording.trace.load), (2, 1500))
        self.assertEqual(list(recording.traces), ["cuda:0"])
        self.assertEqual(fake.calls, [("all", "alloc", "python", True), "snapshot", (None, "all", "all", False)])
        self.assertEqual(self.record(FakeCuda([TWO_BUFFERS]), alignment=512).trace.load, 1536)

    def test_what_is_saved_is_read_again(self):
        recording = self.record(FakeCuda([TWO_BUFFERS]))
        with tempfile.TemporaryDirectory() as folder:
            for name in ("s.pickle", "s.pickle.zst", "s.csv", "s.csv.zst", "s.csv.gz"):
                path = pathlib.Path(folder, name)
                recording.save(path)
                again = planlab.read(path)
                self.assertEqual(again.to_dict().keys(), recording.trace.to_dict().keys())
                self.assertEqual((again.ids, again.load), (recording.trace.ids, 1500), name)
                self.assertEqual((again.lower.tolist(), again.upper.tolist()), ([1, 2], [4, 6]), name)
            with pathlib.Path(folder, "s.pickle").open("rb") as file:
                self.assertEqual(len(pickle.load(file)["device_traces"][0]), 6)
            with self.assertRaises(FileNotFoundError):
                recording.save(pathlib.Path(folder, "none", "s.csv"))
            with self.assertRaises(KeyError):
                recording.save(pathlib.Path(folder, "other.pickle"), name="cuda:1")

    def test_the_gpu_that_was_asked_for_is_the_trace(self):
        histories = [TWO_BUFFERS, [(4096, 64, 1), (4096, 64, -1)]]
        self.assertEqual(self.record(FakeCuda(histories, gpus=2), device="cuda").trace.load, 1500)
        self.assertEqual(self.record(FakeCuda(histories, gpus=2), device="cuda:1").trace.load, 64)

    def test_iterations_are_ranges_of_steps(self):
        fake = FakeCuda([TWO_BUFFERS[:1]])
        made = []

        def allocate(events):
            made.extend(snapshot_of(events)["device_traces"][0])
            time.sleep(0.001)

        fake.module.cuda.memory._snapshot = lambda: {"segments": [], "device_traces": [made]}
        with fake.installed(), planlab.record() as recording:
            allocate(TWO_BUFFERS[:1])
            recording.iteration()
            allocate(TWO_BUFFERS[1:3])
            recording.iteration()
            allocate(TWO_BUFFERS[3:])
        self.assertEqual(recording.iterations, [range(2, 5), range(5, 7)])
        with FakeCuda([TWO_BUFFERS]).installed(), planlab.record() as unmarked:
            pass
        self.assertEqual(unmarked.iterations, [])

    def test_a_block_that_raises_is_recorded_up_to_there(self):
        fake = FakeCuda([TWO_BUFFERS])
        with fake.installed(), self.assertRaisesRegex(MemoryError, "out of memory"):
            with planlab.record() as recording:
                raise MemoryError("out of memory")
        self.assertEqual(recording.trace.load, 1500)
        self.assertEqual(fake.calls[-1][0], None)
        empty = FakeCuda()
        with empty.installed(), self.assertRaisesRegex(KeyError, "mine"):
            with planlab.record() as recording:
                raise KeyError("mine")
        with self.assertRaisesRegex(RuntimeError, "was not recorded: nothing was allocated on cuda:0"):
            recording.trace

    def test_a_history_of_the_caller_is_kept(self):
        fake = FakeCuda([TWO_BUFFERS])
        is_on = [True]
        fake.module._C = types.SimpleNamespace(_cuda_isHistoryEnabled=lambda: is_on[0])
        with fake.installed(), self.assertRaisesRegex(RuntimeError, "memory history is on already"):
            with planlab.record():
                self.fail("nothing runs")
        self.assertEqual(fake.calls, [])
        is_on[0] = False
        self.assertEqual(self.record(fake).trace.load, 1500)

    def test_what_cannot_be_recorded_is_said_before(self):
        with FakeCuda(gpus=0).installed():
            with self.assertRaisesRegex(RuntimeError, 'PyTorch finds no GPU; device="cpu" records the CPU'):
                planlab.record("torch", device="cuda")
        with FakeCuda(gpus=2).installed():
            with self.assertRaisesRegex(RuntimeError, "'cuda:2', but PyTorch finds only 2"):
                planlab.record("torch", device="cuda:2")
            for device in ("gpu", "cuda:", "cuda:x", "cuda:-1", "mps"):
                with self.assertRaisesRegex(ValueError, "`device` is"):
                    planlab.record("torch", device=device)
        old = FakeCuda()
        old.module.cuda.memory._record_memory_history = lambda enabled, device=None: None
        with old.installed(), self.assertRaisesRegex(RuntimeError, "2.1 and later"):
            planlab.record()
        with self.assertRaisesRegex(RuntimeError, "nothing was allocated on cuda:0"):
            self.record(FakeCuda())


def operation(name, begin, end, *children):
    return types.SimpleNamespace(
        name=name, start_time_ns=begin, duration_time_ns=end - begin, start_tid=1, extra_fields=None, children=children
    )


def allocation(at, address, size, kind="cpu"):
    fields = type("_ExtraFields_Allocation", (), {})()
    fields.ptr, fields.alloc_size, fields.total_allocated, fields.total_reserved = address, size, 0, 0
    fields.device = types.SimpleNamespace(type=kind, index=0)
    return types.SimpleNamespace(start_time_ns=at, start_tid=1, extra_fields=fields, children=())


class FakeProfiler:
    """A PyTorch without Kineto, whose profiler has seen what a test says."""

    def __init__(self, *tree):
        results = types.SimpleNamespace(experimental_event_tree=lambda: list(tree))
        profile = mock.MagicMock()
        profile.profiler.kineto_results = results
        self.module = types.ModuleType("torch")
        self.module.cuda = types.SimpleNamespace(is_available=lambda: False)
        activity = types.SimpleNamespace(CPU="cpu")
        self.module.profiler = types.SimpleNamespace(ProfilerActivity=activity, profile=lambda **_: profile)
        self.module.autograd = types.SimpleNamespace(kineto_available=lambda: False)

    def record(self):
        with mock.patch.dict(sys.modules, {"torch": self.module}), planlab.record("torch") as recording:
            recording.iteration()
        return recording


class Processors(unittest.TestCase):
    def test_a_profiler_without_kineto_is_read_from_its_tree(self):
        now = time.time_ns() + 10**9
        inner = operation("aten::empty", now + 20, now + 40, allocation(now + 30, 64, 1000))
        tree = [
            operation("aten::linear", now, now + 100, allocation(now + 10, 4096, 24), inner),
            allocation(now + 200, 64, -1000),
            allocation(now + 250, 128, 5, kind="cuda"),
            allocation(now + 300, 4096, -24),
        ]
        recording = FakeProfiler(*tree).record()
        trace = recording.trace
        self.assertEqual((len(trace), trace.load), (2, 1024))
        self.assertEqual(trace.operations, ["aten::linear", "aten::empty"])
        self.assertEqual((trace.lower.tolist(), trace.upper.tolist()), ([1, 2], [4, 3]))
        self.assertEqual(recording.iterations, [range(1, 5)])
        self.assertIn("PyTorch on cpu", repr(trace))

    def test_a_block_without_allocations_is_an_error(self):
        with self.assertRaisesRegex(RuntimeError, "nothing was allocated on the CPU"):
            FakeProfiler(operation("aten::add_", 1, 2)).record()

    @unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
    def test_the_load_is_the_profilers_own_sum(self):
        import torch

        net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 8))
        with planlab.record("torch", device="cpu") as recording:
            for _ in range(3):
                recording.iteration()
                net(torch.randn(32, 64)).square().sum().backward()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "profile.json")
            recording.save(path)
            events = json.loads(path.read_text())["traceEvents"]
        events = [event["args"] for event in events if event.get("name") == "[memory]"]
        events.sort(key=lambda event: event["Ev Idx"])
        live, live_bytes, peak, before = set(), 0, 0, 0
        for event in events:
            if event["Bytes"] > 0:
                live.add(event["Addr"])
            elif event["Addr"] in live:
                live.discard(event["Addr"])
            else:
                # Of before the recording: it was there all the time until now.
                before -= event["Bytes"]
                peak -= event["Bytes"]
                live_bytes -= event["Bytes"]
            live_bytes += event["Bytes"]
            peak = max(peak, live_bytes)
        self.assertEqual(before, 0)
        self.assertEqual(recording.trace.load, peak)
        self.assertGreaterEqual(peak, 32 * 128 * 4)
        self.assertEqual(len(recording.iterations), 3)
        self.assertEqual(recording.iterations[-1].stop, len(events) + 1)
        self.assertTrue(all(len(steps) > 10 for steps in recording.iterations))
        self.assertTrue(recording.trace.plan().proved)


class Programs(unittest.TestCase):
    """JAX: XLA is played by a test that copies a dump."""

    def setUp(self):
        self.addCleanup(setattr, _jax, "_dump", None)
        environment = mock.patch.dict("os.environ")
        environment.start()
        self.addCleanup(environment.stop)
        _jax.os.environ.pop("XLA_FLAGS", None)

    def compile(self, number, function="jit_step"):
        """Dumps what XLA dumps, as far as it matters."""
        flags = dict(flag.partition("=")[::2] for flag in _jax.os.environ["XLA_FLAGS"].split())
        folder = pathlib.Path(flags["--xla_dump_to"])
        self.assertIn("--xla_dump_hlo_as_proto", flags)
        name = f"module_{number:04}.{function}.sm_9.0_gpu_after_optimizations.hlo.pb"
        (folder / name).write_bytes((SAMPLES / "jax_mlp.hlo.pb.zst").read_bytes())
        (folder / f"module_{number:04}.jit_small.cpu_after_optimizations.hlo.pb").write_bytes(b"\x0a\x00")

    def test_programs_that_are_compiled_are_traces(self):
        expected = planlab.read(SAMPLES / "jax_mlp.hlo.pb.zst").load
        with self.installed():
            for number in (1, 2):
                with planlab.record("jax") as recording:
                    self.compile(number)
                self.assertEqual(list(recording.traces), [f"module_{number:04}.jit_step"])
                self.assertEqual((recording.trace.load, recording.iterations), (expected, []))
                self.assertNotIn("XLA_FLAGS", _jax.os.environ)

    def installed(self):
        return mock.patch.object(importlib.util, "find_spec", lambda name: name)

    def test_what_cannot_be_recorded_is_said(self):
        with self.installed():
            with self.assertRaisesRegex(RuntimeError, "XLA compiled nothing in the block"):
                with planlab.record("jax"):
                    pass
            with self.assertRaisesRegex(ValueError, "`device` is for PyTorch"):
                planlab.record("jax", device="cpu")
            _jax._dump = None
            _jax.os.environ["XLA_FLAGS"] = "--xla_dump_to=/tmp/mine"
            with self.assertRaisesRegex(RuntimeError, "has --xla_dump_to already"):
                planlab.record("jax")
            del _jax.os.environ["XLA_FLAGS"]
            bridge = types.SimpleNamespace(backends_are_initialized=lambda: True)
            with mock.patch.dict(sys.modules, {"jax._src.xla_bridge": bridge}):
                with self.assertRaisesRegex(RuntimeError, "before its first computation"):
                    planlab.record("jax")


class Mistakes(unittest.TestCase):
    def test_a_framework_that_is_missing_or_unknown(self):
        with mock.patch.dict(sys.modules, {"torch": None}):
            with self.assertRaisesRegex(ImportError, "needs PyTorch"):
                planlab.record()
        with mock.patch.object(importlib.util, "find_spec", lambda name: None):
            with self.assertRaisesRegex(ImportError, "needs JAX, which is not installed"):
                planlab.record("jax")
        with self.assertRaisesRegex(ValueError, "`framework` is 'mxnet'"):
            planlab.record("mxnet")
        with self.assertRaisesRegex(ValueError, "`alignment` is 0"):
            planlab.record(alignment=0)

    def test_a_recording_is_asked_after_its_end_and_made_once(self):
        with FakeCuda([TWO_BUFFERS]).installed():
            with planlab.record() as recording:
                with self.assertRaisesRegex(RuntimeError, "has not ended"):
                    recording.trace
            with self.assertRaisesRegex(RuntimeError, "is made once"):
                with recording:
                    pass
