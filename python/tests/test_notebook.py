"""The notebook in Jupyter itself, as a reader would run it.

Needs nbclient and ipykernel, which `scripts/test-python` puts into its environment; skipped without them.
"""

import importlib.util
import os
import pathlib
import tempfile
import unittest
import xml.etree.ElementTree
from unittest import mock

import planlab

NOTEBOOK = pathlib.Path(__file__).resolve().parents[1] / "examples/first_plan.ipynb"
HAS_JUPYTER = all(importlib.util.find_spec(name) for name in ("nbclient", "nbformat", "ipykernel"))


@unittest.skipUnless(HAS_JUPYTER, "nbclient and ipykernel are not installed")
class Jupyter(unittest.TestCase):
    def test_the_map_is_shown_inline(self):
        import nbclient
        import nbformat

        notebook = nbformat.read(NOTEBOOK, as_version=4)
        for cell in notebook.cells:
            cell.pop("outputs", None)
            if cell.cell_type == "code":
                cell.outputs = []
        # The package that this process has, wherever the kernel starts.
        package = str(pathlib.Path(planlab.__file__).resolve().parents[1])
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, {"PYTHONPATH": package}):
            client = nbclient.NotebookClient(
                notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}}
            )
            client.execute()
        outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
        self.assertFalse([output for output in outputs if output.output_type in ("error", "stream")], outputs)
        pictures = [output["data"]["image/svg+xml"] for output in outputs if "image/svg+xml" in output.get("data", {})]
        self.assertGreaterEqual(len(pictures), 2)
        titles = []
        for picture in pictures:
            root = xml.etree.ElementTree.fromstring("".join(picture))
            self.assertTrue(root.tag.endswith("svg"))
            titles.append(root.findtext("{http://www.w3.org/2000/svg}title"))
        # The load of the trace, then the map of the plan.
        self.assertTrue(titles[0].startswith("Load of 104 buffers"), titles)
        self.assertTrue(any("A plan of 104 buffers" in title for title in titles[1:]), titles)


if __name__ == "__main__":
    unittest.main()
