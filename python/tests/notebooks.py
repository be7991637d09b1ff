"""Runs the cells of a notebook as Jupyter does, as far as ours need it, and compares what they show.

With PLANLAB_BLESS=1 what they show is written into the notebook.
"""

import ast
import json
import os


def check(test, path):
    """Runs a notebook; says which output differs from the one that it holds. Returns the new ones."""
    notebook = json.loads(path.read_text())
    names = {"__name__": "__main__"}
    shown = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        output = _shown(_run("".join(cell["source"]), names, str(path)))
        shown.append(output)
        outputs = [] if output is None else [_output(output, cell["execution_count"])]
        if os.environ.get("PLANLAB_BLESS"):
            cell["outputs"] = outputs
        else:
            test.assertEqual(cell["outputs"], outputs, "".join(cell["source"]))
    if os.environ.get("PLANLAB_BLESS"):
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    return [output for output in shown if output is not None]


def _run(source, names, file):
    """Executes a cell; the value of its last line if that is an expression."""
    body = ast.parse(source, file)
    last = body.body.pop() if body.body and isinstance(body.body[-1], ast.Expr) else None
    exec(compile(body, file, "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), file, "eval"), names)


def _shown(value):
    """A value in each form that a notebook may show."""
    if value is None:
        return None
    forms = {"text/plain": repr(value)}
    for kind, method in (("text/html", "_repr_html_"), ("image/svg+xml", "_repr_svg_")):
        if hasattr(value, method):
            forms[kind] = getattr(value, method)()
    if "image/svg+xml" in forms:
        # The page repeats the picture, and the plain text has seconds in it.
        del forms["text/html"], forms["text/plain"]
    return forms


def _output(forms, number):
    lines = {kind: text.splitlines(keepends=True) for kind, text in forms.items()}
    return {"data": lines, "execution_count": number, "metadata": {}, "output_type": "execute_result"}
