"""Imports only point downwards."""

from __future__ import annotations

import pytest

from .layers import CORE, ORDER, PACKAGE, STANDALONE, existing_modules, violations


def test_imports_only_point_downwards():
    assert violations(PACKAGE) == []


def test_the_search_reads_the_real_package():
    assert {"errors", "assets"} <= set(existing_modules(PACKAGE))


def test_every_name_has_one_place():
    assert len(set(ORDER)) == len(ORDER)
    assert set(ORDER) >= CORE
    assert set(ORDER) >= STANDALONE


# These show that the test above can fail.


@pytest.fixture
def package(tmp_path):
    root = tmp_path / "crosstok"
    (root / "reference").mkdir(parents=True)
    (root / "__init__.py").write_text("from crosstok.vocabulary import Vocabulary\n")
    (root / "errors.py").touch()
    (root / "bpe.py").write_text("from crosstok.errors import BadInput\n")
    (root / "vocabulary.py").write_text("from crosstok import bpe, errors\n")
    (root / "reference" / "__init__.py").write_text("from crosstok.reference.beam import beam\n")
    (root / "reference" / "beam.py").write_text("from . import table\n")
    (root / "reference" / "table.py").touch()
    return root


def test_a_good_tree_passes(package):
    with (package / "vocabulary.py").open("a") as module:
        module.write("from crosstok import __version__\n")
    assert violations(package) == []


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("bpe", "from crosstok.vocabulary import Vocabulary"),
        ("bpe", "from crosstok import vocabulary"),
        ("bpe", "import crosstok.vocabulary as v"),
        ("bpe", "from .vocabulary import Vocabulary"),
        ("bpe", "from . import vocabulary"),
        ("bpe", "import crosstok"),
        ("bpe", "from crosstok import Vocabulary"),
        ("bpe", "def late():\n    from crosstok.vocabulary import Vocabulary"),
        ("reference/beam", "from crosstok.vocabulary import Vocabulary"),
        ("reference/beam", "from ..errors import BadInput"),
        ("newcomer", "import json"),
    ],
)
def test_a_bad_tree_is_named(package, module, code):
    (package / f"{module}.py").write_text(code)
    (found,) = violations(package)
    assert module.split("/")[0] in found
