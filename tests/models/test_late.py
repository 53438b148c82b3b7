"""The adapter that needs torch is imported late, and says what is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from crosstok import models

MISSING = """
import sys
sys.modules["torch"] = None
from crosstok import models
from crosstok.errors import BadInput
try:
    models.TransformersModel
except BadInput as error:
    print(error)
"""


def test_a_missing_torch_is_explained():
    done = subprocess.run(
        [sys.executable, "-c", MISSING], check=True, capture_output=True, text=True
    )
    assert "crosstok[torch]" in done.stdout


def test_other_names_are_unknown():
    assert models.TableModel.__name__ in models.__all__
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        models.Nothing  # noqa: B018
