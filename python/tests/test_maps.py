"""Maps of plans, and the notebook that shows them."""

import pathlib
import pickle
import re
import tempfile
import unittest
from xml.etree import ElementTree

import planlab

from . import notebooks
from .test_plan import LOWER, SIZE, UPPER

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"
SVG = "{http://www.w3.org/2000/svg}"

ARENAS = """# arena fast: 1000
# arena slow: 4000
id,lower,upper,size,arena,category
a,0,2,800,fast,weight
b,0,2,1600,slow,<&>
"""


def rectangles(svg):
    """(left, top, width, height) of each buffer, by its title."""
    found = {}
    for rectangle in ElementTree.fromstring(svg).iter(f"{SVG}rect"):
        title = rectangle.find(f"{SVG}title")
        if title is not None:
            found[title.text] = tuple(float(rectangle.get(name)) for name in ("x", "y", "width", "height"))
    return found


def overlap(one, other):
    """Whether two rectangles share more than the rounding of their numbers."""
    (x, y, width, height), (x2, y2, width2, height2) = one, other
    across, up = min(x + width, x2 + width2) - max(x, x2), min(y + height, y2 + height2) - max(y, y2)
    return across > 0.2 and up > 0.2


class Maps(unittest.TestCase):
    def test_a_plan_is_drawn_to_scale(self):
        plan = planlab.plan(LOWER, UPPER, SIZE, pins=[0, 4096, 5120], threads=1)
        drawn = rectangles(plan.to_svg(width=580, height=246))
        # 500 across for 5 steps, 200 up for 9216 bytes.
        self.assertEqual(
            {title.partition(":")[0]: shape for title, shape in drawn.items()},
            {
                "0": (72.0, 121.1, 300.0, 88.89),
                "1": (172.0, 98.9, 100.0, 22.22),
                "2": (272.0, 10.0, 300.0, 88.89),
            },
        )
        self.assertIn("1: 1.00 KiB at 4096, steps 1 to 2", drawn)
        self.assertIn("3 buffers in 9.00 KiB", plan._repr_html_())
        self.assertEqual(plan._repr_svg_(), plan.to_svg())

    def test_no_two_buffers_of_a_real_plan_overlap(self):
        plan = planlab.read("chainer/alexnet/train/b32").plan()
        drawn = list(rectangles(plan.to_svg(width=2000, height=1200)).values())
        self.assertEqual(len(drawn), len(plan.offsets))
        for at, one in enumerate(drawn):
            self.assertFalse(any(overlap(one, other) for other in drawn[:at]))

    def test_many_buffers_are_limited_and_it_is_said(self):
        count = 5000
        plan = planlab.plan(range(count), range(1, count + 1), [*range(1, count + 1)], planner="best-fit")
        svg = plan.to_svg()
        drawn = rectangles(svg)
        self.assertEqual(len(drawn), 1000)
        self.assertTrue(all(int(title.partition(":")[0]) >= count - 1000 for title in drawn))
        self.assertIn("1000 of 5000 buffers are drawn", svg)
        self.assertLess(len(svg), 300_000)

    def test_arenas_have_axes_of_their_own_and_names_are_escaped(self):
        trace = self.read(ARENAS)
        self.assertEqual(trace.arenas.tolist(), [0, 1])
        svg = trace.plan().to_svg(width=480, height=246)
        # Each buffer fills its arena: 200 of 246 pixels up.
        for left, top, width, height in rectangles(svg).values():
            self.assertEqual((left, top, width, height), (72, 10, 400, 200))
        self.assertIn("b (&lt;&amp;&gt;): 1.56 KiB", svg)
        self.assertEqual(ElementTree.fromstring(svg).get("height"), "492")
        self.assertEqual(trace.to_svg().count("<title>Load of 1 buffers"), 2)
        self.assertEqual(trace.arena_names, ["fast", "slow"])
        for drawn in (svg, trace.to_svg()):
            self.assertLess(drawn.index(">arena fast</text>"), drawn.index(">arena slow</text>"))

    def test_letters_that_xml_forbids_are_written_out(self):
        trace = self.read("id,lower,upper,size\na\x01\u202e\uffff,0,2,8\n")
        for svg in (trace.plan().to_svg(), trace.to_svg()):
            ElementTree.fromstring(svg)
        self.assertIn(r"a\u{1}\u{202e}\u{ffff}: 8 B", trace.plan().to_svg())
        # Spaces of any width are seen.
        spaces = "a\u00a0b\u202fc\u3000d"
        self.assertIn(f"{spaces}: 8 B", self.read(f"id,lower,upper,size\n{spaces},0,2,8\n").plan().to_svg())

    def read(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "t.csv")
            path.write_text(text)
            return planlab.read(path)

    def test_a_trace_is_drawn_as_its_load(self):
        trace = self.read("id,lower,upper,size\na,0,2,100\nb,1,4,300\n")
        svg = trace.to_svg(width=480, height=146)
        # 400 across for 4 steps, 100 up for 400 bytes: 100, 400, 300, 300, 0.
        self.assertIn("M72 110.0H72V85.0H172V10.0H272V35.0H472V110.0H472V110.0Z", svg)
        ElementTree.fromstring(svg)
        self.assertIn("2 buffers, load 400 B", trace._repr_html_())

    def test_colours_are_legible_on_light_and_dark_pages(self):
        def brightness(colour):
            parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
            linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
            return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

        trace = planlab.read("model/squeezenet1-0/train/b1")
        svg = trace.plan().to_svg() + trace.to_svg()
        colours = set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]{6})"', svg))
        self.assertGreater(len(colours), 2)
        for colour in colours:
            # Contrast as WCAG has it, on white and on a page of #121212.
            self.assertGreater(1.05 / (brightness(colour) + 0.05), 2.6, colour)
            self.assertGreater((brightness(colour) + 0.05) / (0.05 + 0.008), 3, colour)

    def test_nothing_and_great_numbers_are_drawn(self):
        ElementTree.fromstring(planlab.plan([], [], []).to_svg())
        base = 1_700_000_000_000_000_000
        plan = planlab.plan([base, base + 5], [base + 5, base + 9], [2**62, 2**62])
        self.assertEqual(len(rectangles(plan.to_svg())), 2)

    def test_a_plan_that_was_pickled_keeps_all_but_the_map(self):
        for plan in (planlab.plan(LOWER, UPPER, SIZE), planlab.read("chainer/alexnet/infer/b1").plan()):
            again = pickle.loads(pickle.dumps(plan))
            self.assertEqual(again.to_dict(), plan.to_dict())
            self.assertEqual((again._repr_html_(), again._repr_svg_()), (None, None))
            with self.assertRaisesRegex(ValueError, "pickled"):
                again.to_svg()


class Notebooks(unittest.TestCase):
    def test_the_notebook_shows_what_it_says(self):
        for path in sorted(EXAMPLES.glob("*.ipynb")):
            outputs = notebooks.check(self, path)
            self.assertTrue(any("image/svg+xml" in output for output in outputs), path)
