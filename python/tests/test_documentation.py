"""The examples of the docstrings and of the book."""

import doctest
import pathlib
import re
import unittest

import planlab
from planlab import _planning, _traces

ROOT = pathlib.Path(__file__).resolve().parents[2]
EMBED = ROOT / "docs/embed.md"
GUIDE = ROOT / "docs/python.md"


class Examples(unittest.TestCase):
    def test_the_examples_of_the_docstrings_are_true(self):
        for module in (planlab, _planning, _traces):
            results = doctest.testmod(module)
            self.assertGreater(results.attempted, 0, module)
            self.assertEqual(results.failed, 0, module)

    def assert_true(self, name, text):
        """Runs the examples of a text."""
        example = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
        self.assertGreater(len(example.examples), 0)
        self.assertEqual(doctest.DocTestRunner().run(example).failed, 0)

    def blocks(self, path):
        return re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)

    def test_the_example_of_the_page_for_programs_is_true(self):
        blocks = [block for block in self.blocks(EMBED) if "planlab.plan(" in block]
        self.assertEqual(len(blocks), 1)
        self.assert_true("embed", blocks[0])

    def test_the_examples_of_the_guide_are_true(self):
        blocks = [block for block in self.blocks(GUIDE) if block.startswith(">>>")]
        self.assertEqual(len(blocks), 3)
        self.assert_true("guide", "".join(blocks))

    def test_the_guide_has_the_example_of_the_folder(self):
        source = (ROOT / "python/examples/resnet18_training.py").read_text()
        recorded = [block for block in self.blocks(GUIDE) if "planlab.record(" in block]
        self.assertEqual(recorded, [source.rpartition('"""\n')[2].lstrip()])
