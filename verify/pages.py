"""The picture of a text in a real browser: it draws, in light and dark, without any complaint.

Needs Chromium (``chromium``, ``chromium-browser`` or ``google-chrome`` on the path, or in
``$CHROMIUM``); without it the suite checks that the page can be written, and says that no browser
has looked at it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from html import unescape
from pathlib import Path

from crosstok import assets
from crosstok.inspection import sample
from crosstok.loading import load
from crosstok.pages import comparison
from verify.common import Suite

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SCHEMES = {"dark": 0, "light": 1}
PAIRS = (("gpt2", "qwen2_5"), ("llama2", "gpt2"))
WINDOW = (1200, 900)
# Reports what a reader would run into: text that is wider than the window, tokens too small to
# point at, rows of a block that do not stand on the same columns.
PROBE = """
<script>addEventListener("load", () => {
  const tokens = [...document.querySelectorAll(".lines .token")];
  const blocks = [...document.querySelectorAll(".lines .block")];
  const ends = (block, side) => Math.max(...[...block.querySelectorAll(side)].map(
    (cell) => Math.round(cell.getBoundingClientRect().right)));
  const found = {
    tokens: tokens.length,
    small: tokens.filter((t) => t.getBoundingClientRect().height < 16
      || t.getBoundingClientRect().width < 4).length,
    uneven: blocks.filter((b) => Math.abs(ends(b, ".native") - ends(b, ".target")) > 1).length,
    wide: Number(document.documentElement.scrollWidth > innerWidth),
    stops: document.querySelectorAll('.lines .token[tabindex="0"]').length,
    lines: document.querySelectorAll(".lines li").length,
  };
  const first = document.querySelector(".lines .token");
  first.focus();
  first.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowDown", bubbles: true}));
  found.down = Number(document.activeElement.closest(".target") !== null);
  document.title = JSON.stringify(found);
});</script></body>"""


def main() -> int:
    suite = Suite("pages")
    browser = find_browser()
    suite.count("browser", browser or "none: no browser has looked at the pages")
    for names in PAIRS:
        native, target = (load(assets.path(name), name=name) for name in names)
        html = comparison(native, target, sample())
        what = f"{names[0]} and {names[1]}"
        suite.require(f"{what}: the page is written whole", html.rstrip().endswith("</html>"))
        if browser:
            look(suite, browser, html, what)
    return suite.finish()


def find_browser() -> str | None:
    """The browser's program, if there is one."""
    names = (os.environ.get("CHROMIUM", ""), *BROWSERS)
    return next((found for name in names if name and (found := shutil.which(name))), None)


def look(suite: Suite, browser: str, html: str, what: str) -> None:
    with tempfile.TemporaryDirectory(prefix="crosstok-pages-") as scratch:
        folder = Path(scratch)
        page = folder / "page.html"
        page.write_text(html.replace("</body>", PROBE), encoding="utf-8")
        found = measured(run(browser, folder, "--dump-dom", page.as_uri()).stdout)
        suite.count(f"{what}: drawn", found)
        for name in ("small", "uneven", "wide"):
            suite.violations(f"{what}: {name}", found[name])
        suite.require(f"{what}: all tokens are drawn", found["tokens"] == html.count('role="img"'))
        suite.require(f"{what}: one tab stop a line", found["stops"] == found["lines"])
        suite.require(f"{what}: arrow keys change the row", found["down"] == 1)
        drawn = {name: shot(browser, folder, page, value) for name, value in SCHEMES.items()}
        suite.require(f"{what}: light and dark differ", drawn["light"] != drawn["dark"])


def measured(dom: bytes) -> dict[str, int]:
    """What the probe wrote into the title."""

    title = dom.decode().split("<title>")[1].split("</title>")[0]
    found: dict[str, int] = json.loads(unescape(title))
    return found


def shot(browser: str, folder: Path, page: Path, scheme: int) -> int:
    """A digest of the picture that the browser makes of the page."""
    picture = folder / f"{scheme}.png"
    asked = f"--blink-settings=preferredColorScheme={scheme}"
    run(browser, folder, f"--screenshot={picture}", asked, page.as_uri())
    return zlib.crc32(picture.read_bytes())


def run(browser: str, folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    size = ",".join(map(str, WINDOW))
    # Containers have no sandbox of their own, and the page is ours.
    common = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    profile = [f"--user-data-dir={folder / 'profile'}", f"--window-size={size}"]
    return subprocess.run(
        [browser, *common, *profile, *words], check=True, capture_output=True, timeout=120
    )


if __name__ == "__main__":
    sys.exit(main())
