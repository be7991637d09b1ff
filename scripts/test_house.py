"""Tests of scripts/house."""

import importlib.machinery
import importlib.util
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).parent / "house"


def load_house():
    loader = importlib.machinery.SourceFileLoader("house", str(SCRIPT))
    house = importlib.util.module_from_spec(importlib.util.spec_from_loader("house", loader))
    loader.exec_module(house)
    return house


class Crates(unittest.TestCase):
    def read(self, files: dict, floors: str):
        house = load_house()
        house.FLOORS = {"crate": floors}
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                file = Path(root) / "crate/src" / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            crate = house.Crate(Path(root), "crate")
            return crate.circles(), crate.upward_arrows()

    def test_order_is_kept(self):
        files = {
            "lib.rs": "mod low;\nmod high;\npub use high::run;",
            "low.rs": "pub struct Low;\n#[cfg(test)]\nmod tests {\n    use crate::high::run;\n}",
            "high.rs": "use crate::low::Low;\npub fn run() -> Low { Low }",
        }
        self.assertEqual(self.read(files, "high > low"), ([], []))

    def test_arrow_through_a_re_export_is_followed(self):
        files = {
            "lib.rs": "mod low;\nmod high;\npub use high::run;",
            "low.rs": "use crate::run;\npub struct Low;\nfn early() { run(); }",
            "high.rs": "use crate::low::Low;\npub fn run() -> Low { Low }",
        }
        circles, upward = self.read(files, "high > low")
        self.assertEqual([len(circle) for circle in circles], [2])
        self.assertEqual(upward, ["crate: low uses high, which is not below: low.rs: run"])

    def test_room_without_a_floor_is_named(self):
        _, upward = self.read({"lib.rs": "mod low;", "low.rs": ""}, "high")
        self.assertEqual(upward, ["crate: `low` is on no floor", "crate: there is no room `high`"])


if __name__ == "__main__":
    unittest.main()
