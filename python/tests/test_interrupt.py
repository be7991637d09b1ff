"""Ctrl-C, and other threads of Python."""

import os
import signal
import threading
import time
import unittest

import planlab

# Random buffers whose optimum takes long to prove, if ever, so that a plan of them runs until it is stopped.
HARD = "synthetic/uniform/n10000/s1"


# Minutes: long enough that a busy machine ends a plan at a signal long before, short enough for a test that fails.
LIMIT = 600


class Interrupts(unittest.TestCase):
    def interrupted_after(self, planner):
        """Seconds from a signal to the exception."""
        trace = planlab.read(HARD)
        sent = []

        def interrupt():
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(0.5, interrupt)
        try:
            with self.assertRaises(KeyboardInterrupt):
                timer.start()
                trace.plan(time_limit=LIMIT, planner=planner)
            return time.monotonic() - sent[0]
        finally:
            timer.cancel()
            timer.join()

    def test_ctrl_c_ends_a_plan_long_before_its_time_limit(self):
        for planner in ("portfolio", "annealing"):
            self.assertLess(self.interrupted_after(planner), LIMIT / 2, planner)

    def test_what_a_handler_raises_ends_a_plan(self):
        def handler(number, frame):
            raise TimeoutError("the alarm rang")

        before = signal.signal(signal.SIGALRM, handler)
        try:
            trace = planlab.read(HARD)
            with self.assertRaisesRegex(TimeoutError, "the alarm rang"):
                signal.setitimer(signal.ITIMER_REAL, 0.3)
                trace.plan(time_limit=LIMIT)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def test_a_handler_that_raises_nothing_ends_nothing(self):
        rang = []
        before = signal.signal(signal.SIGALRM, lambda number, frame: rang.append(number))
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            plan = planlab.read(HARD).plan(time_limit=0.5)
        finally:
            signal.signal(signal.SIGALRM, before)
        self.assertEqual((rang, plan.stop), ([signal.SIGALRM], "deadline"))


class Threads(unittest.TestCase):
    def counted_meanwhile(self, seconds):
        """How often another thread of Python runs while one plans for the given seconds."""
        counted = 0
        trace = planlab.read(HARD)
        worker = threading.Thread(target=lambda: trace.plan(time_limit=seconds, threads=1))
        worker.start()
        while worker.is_alive():
            counted += 1
            time.sleep(0.001)
        worker.join()
        return counted

    def test_python_goes_on_meanwhile(self):
        # With the interpreter's lock held it is two or three, however long the plan takes. A busy machine has tens, at
        # the latest within a minute.
        self.assertTrue(any(self.counted_meanwhile(seconds) > 10 for seconds in (0.5, 4, 60)))

    def test_eight_threads_get_what_one_gets(self):
        trace = planlab.read("chainer/alexnet/train/b32")
        ask = {"threads": 1, "work_limit": 50_000, "time_limit": 600}
        expected = trace.plan(**ask).offsets.tolist()
        got = []
        workers = [threading.Thread(target=lambda: got.append(trace.plan(**ask))) for _ in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual([plan.offsets.tolist() for plan in got], [expected] * 8)
