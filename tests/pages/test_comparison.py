"""The picture of a text under two tokenizers, as a file."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosstok.alignment import boundaries, place_tokens
from crosstok.pages import Fact, comparison
from tests.inspection.toys import NASTY, byte_level, families, toy

from .reading import read

vocabularies = cache(families)
PAIRS = [("bytes", "nfc"), ("nfc", "dummy"), ("low line", "bytes"), ("dummy", "low line")]
TEXTS = st.text(st.sampled_from("abc \t\r\n<&>\"'1你é▁\u0301\u0338=👩\x00\u200d"), max_size=30)


def page(native, target, text, **settings):
    return comparison(vocabularies()[native], vocabularies()[target], text, **settings)


@pytest.mark.parametrize(("native", "target"), PAIRS)
def test_nothing_of_the_text_is_lost(native, target):
    check(native, target, NASTY)


@settings(max_examples=40, deadline=None)
@given(text=TEXTS, pair=st.sampled_from(PAIRS))
def test_nothing_of_any_text_is_lost(text, pair):
    check(*pair, text)


def check(native, target, text):
    found = read(page(native, target, text))
    for side, name in (("native", native), ("target", target)):
        assert found.text_of(side) == text.encode()
        ids = [re.search(r"token (\d+):", t.attributes["aria-label"])[1] for t in found.tokens
               if t.side == side]  # fmt: skip
        assert list(map(int, ids)) == vocabularies()[name].encode(text)


@pytest.mark.parametrize(("native", "target"), PAIRS)
def test_both_sides_of_a_block_take_the_same_columns(native, target):
    for block in read(page(native, target, NASTY)).blocks:
        ends = set()
        for side in ("native", "target"):
            cells = [cell for cell in block if cell.side == side]
            assert cells[0].first == 1
            assert all(a.behind == b.first for a, b in pairwise(cells))
            ends.add(cells[-1].behind)
        assert len(ends) == 1


def test_blocks_end_where_both_sides_have_a_boundary():
    text = "abcab cab"
    native, target = vocabularies()["bytes"], vocabularies()["nfc"]
    ends = [boundaries(place_tokens(v, text), len(text)) for v in (native, target)]
    found = read(comparison(native, target, text))
    assert len(found.blocks) == len(ends[0] & ends[1]) + 1


def test_lines_are_numbered_as_in_the_text():
    found = read(page("bytes", "low line", "a\nb\n\n\nc"))
    assert found.lines == [1, 2, 3, 4, 5]
    joined = read(comparison(toy(byte_level("Ċ·Ċ")), toy(byte_level("Ċ·Ċ")), "a\n\n\nb"))
    assert joined.lines == [1, 3, 4]


def test_every_token_can_be_focused_and_has_a_name():
    found = read(page("bytes", "dummy", "ab \u200d你"))
    for token in found.tokens:
        assert token.attributes["role"] == "img"
        assert token.attributes["tabindex"] == "0"
        assert re.fullmatch(rf"{token.side} token \d+: .+", token.attributes["aria-label"])
    labels = [token.attributes["aria-label"] for token in found.tokens]
    assert any("byte e2" in label for label in labels)
    assert any(label.startswith("native") and ": space; bytes 2 to 3" in label for label in labels)


def test_a_dummy_prefix_is_shown_but_is_no_text():
    html = page("bytes", "dummy", "a")
    assert "<s>" in html.split('<ol class="lines"')[1]
    found = read(html)
    (label,) = (t.attributes["aria-label"] for t in found.tokens if t.side == "target")
    assert label.endswith("stands for space a")


def test_the_text_cannot_break_out():
    text = "</script></style><script>alert(1)</script><img src=x onerror=alert(1)> \"' {{style}}"
    found = read(page("bytes", "nfc", text))
    assert [tag for tag, _ in found.elements].count("script") == 1
    assert "img" not in {tag for tag, _ in found.elements}
    assert found.text_of("native") == text.encode()


def test_names_and_figures_are_escaped():
    odd = toy(byte_level(), "<b>&x")
    html = comparison(odd, odd, "a", facts=[Fact("<i>", "<u>", "1 < 2")], remarks=["a < b"])
    found = read(html)
    assert "u" not in {tag for tag, _ in found.elements}
    assert "1 < 2" in found.texts["td"]
    assert "a < b" in found.texts["p"]
    assert "<b>&x and <b>&x: one text, two tokenizers" in found.texts["title"]


def test_a_long_text_is_cut_at_a_shared_boundary_and_the_page_says_so():
    text = "abc ab " * 40
    found = read(page("bytes", "nfc", text, most_bytes=100))
    shown = found.text_of("native")
    assert shown == found.text_of("target")
    assert text.encode().startswith(shown)
    assert 90 < len(shown) <= 100
    notices = [text for text in found.texts["p"] if "Only the first" in text]
    assert len(notices) == 2
    assert f"first {len(shown)} of the text’s 280 bytes" in notices[0]


def test_a_short_text_has_no_notice_and_an_empty_one_no_picture():
    assert "Only the first" not in page("bytes", "nfc", "abc ab ")
    assert read(page("bytes", "nfc", "")).tokens == []


def test_the_page_needs_nothing_from_outside():
    html = page("bytes", "nfc", NASTY)
    found = read(html)
    for tag, attributes in found.elements:
        assert tag not in {"link", "iframe", "object", "embed", "base"}
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
    code = "".join(found.texts["style"] + found.texts["script"])
    assert not re.search(r"https?:|url\(|@import|fetch\(|import\(", code)


def test_the_page_is_a_document_with_landmarks():
    html = page("bytes", "nfc", "ab")
    found = read(html)
    tags = [tag for tag, _ in found.elements]
    assert html.startswith("<!doctype html>")
    assert ("html", {"lang": "en"}) in found.elements
    assert [tags.count(tag) for tag in ("h1", "main", "header", "title")] == [1, 1, 1, 1]
    assert {attributes.get("scope") for tag, attributes in found.elements if tag == "th"} >= {"col"}
    assert "{{" not in html


def test_the_same_twice():
    assert page("bytes", "nfc", NASTY) == page("bytes", "nfc", NASTY)


# -- colours --------------------------------------------------------------------------------------

READABLE = [
    ("ink", "page"), ("quiet", "page"), ("native-ink", "native"), ("target-ink", "target"),
    ("ink", "same"), ("hex", "native"), ("hex", "target"), ("hex", "same"), ("ink", "notice"),
]  # fmt: skip
VISIBLE = [("sign", "native"), ("sign", "target"), ("sign", "same"), ("rule", "page"),
           ("focus", "page")]  # fmt: skip


def schemes():
    css = read(page("bytes", "nfc", "a")).texts["style"][0]
    light, dark = css.split("@media (prefers-color-scheme: dark)")
    return {
        name: dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", part))
        for name, part in (("light", light), ("dark", dark.split("* {")[0]))
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_told_apart(scheme):
    colours = schemes()[scheme]
    for least, pairs in ((4.5, READABLE), (3, VISIBLE)):
        for front, behind in pairs:
            assert contrast(colours[front], colours[behind]) >= least, (front, behind)


def contrast(one, other):
    """The ratio of WCAG 2."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
