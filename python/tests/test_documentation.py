"""The examples of the docstrings and of the README."""

import doctest
import pathlib
import re
import unittest

import planlab
from planlab import _planning, _traces

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"


class Examples(unittest.TestCase):
    def test_the_examples_of_the_docstrings_are_true(self):
        for module in (planlab, _planning, _traces):
            results = doctest.testmod(module)
            self.assertGreater(results.attempted, 0, module)
            self.assertEqual(results.failed, 0, module)

    def test_the_example_of_the_readme_is_true(self):
        blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
        blocks = [block for block in blocks if "planlab.plan(" in block]
        self.assertEqual(len(blocks), 1)
        example = doctest.DocTestParser().get_doctest(blocks[0], {}, "README", str(README), 0)
        self.assertGreater(len(example.examples), 0)
        runner = doctest.DocTestRunner()
        self.assertEqual(runner.run(example).failed, 0)
