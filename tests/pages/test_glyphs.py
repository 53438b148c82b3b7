"""How bytes are shown and said."""

from __future__ import annotations

import pytest

from crosstok.pages.glyphs import characters, markup, spoken, width


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", []),
        ("aé你👩".encode(), ["a", "é", "你", "👩"]),
        ("é".encode()[1:] + b"a", [b"\xa9", "a"]),
        (b"a" + "你".encode()[:2], ["a", b"\xe4", b"\xbd"]),
        (b"\xf0\x9f\x91", [b"\xf0", b"\x9f", b"\x91"]),
        (b"\xc0\xff", [b"\xc0", b"\xff"]),
    ],
)
def test_characters_and_bytes_of_characters(raw, expected):
    assert list(characters(raw)) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"a<b>&\"'", "a&lt;b&gt;&amp;&quot;&#x27;"),
        (b" ", '<i data-sign="·">&#32;</i>'),
        (b"\r\n", '<i data-sign="␍">&#13;</i><i data-sign="⏎">&#10;</i>'),
        (b"\xbd\xa0", "<b>bd</b><b>a0</b>"),
        (b"\x00\x1b", "<b>00</b><b>1b</b>"),
        ("\u202e".encode(), "<b>e2</b><b>80</b><b>ae</b>"),
        ("\u0301a".encode(), '<i class="mark">\u0301</i>a'),
    ],
)
def test_markup(raw, expected):
    assert markup(raw) == expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"the", "the"),
        (b" the", "space the"),
        (b"    x\n", "4 times space x line break"),
        (b"\xe4\xbd", "byte e4 byte bd"),
        ("\u200d".encode(), "zero width joiner U+200D"),
    ],
)
def test_spoken(raw, expected):
    assert spoken(raw) == expected


@pytest.mark.parametrize(("raw", "columns"), [(b"ab ", 3), ("你é".encode(), 3), (b"\xbd", 3)])
def test_width(raw, columns):
    assert width(raw) == columns
