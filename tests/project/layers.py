"""Which module may import which: one table, and the search for imports that break it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "crosstok"

# From the bottom up: a module imports only what stands before it.  A folder is one entry.
ORDER = (
    "errors",
    "jit",
    "cache",
    "unicode",
    "added",
    "splitting",
    "bpe",
    "covers",
    "vocabulary",
    "selfcheck",
    "hub",
    "compiling",
    "loading",
    "ranks",
    "quick",
    "settling",
    "masks",
    "alignment",
    "truncation",
    "conversion",
    "rows",
    "reference",
    "models",
    "gguf",
    "assets",
    "pages",
    "inspection",
    "cli",
)

# The readable truth that the rest is compared with, so it shares no code with the rest.
STANDALONE = frozenset({"reference"})

# What takes ids, bytes and arrays: no torch, no transformers, no network.
# (The adapters in `models` import their engines when they are asked for.)
CORE = frozenset(ORDER[: ORDER.index("models") + 1]) - {"hub"}


def existing_modules(package: Path) -> list[str]:
    """The modules and folders of a package, except the file that exports their names."""
    entries = [*package.glob("*.py"), *(file.parent for file in package.glob("*/__init__.py"))]
    return sorted({entry.stem for entry in entries} - {"__init__", "__main__"})


def imported(package: Path, module: str) -> Iterator[tuple[str, str, int]]:
    """Each import of a sibling: the sibling, the importing file and the line."""
    folder = package / module
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [package / f"{module}.py"]
    for file in files:
        where = file.relative_to(package.parent)
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            for dotted in targets(node, where):
                if dotted == f"{package.name}.__version__":
                    continue  # a constant of the package itself, which loads no module
                head, *rest = dotted.split(".")
                if head == package.name:
                    # `import crosstok` alone reaches every module by attribute.
                    yield (rest[0] if rest else "__init__"), str(where), node.lineno


def targets(node: ast.AST, where: Path) -> list[str]:
    """The dotted names that an import statement loads; relative ones made absolute."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        around = where.with_suffix("").parts[: -node.level]
        base = ".".join([*around, *filter(None, [node.module])])
    # `from package import module` names the module last; deeper, the base names it.
    return [f"{base}.{alias.name}" for alias in node.names] if "." not in base else [base]


def violations(package: Path, order: tuple[str, ...] = ORDER) -> list[str]:
    """Every broken rule in a package, in words."""
    found = []
    for module in existing_modules(package):
        if module not in order:
            found.append(f"{module} has no place in ORDER; give it one")
            continue
        allowed = set() if module in STANDALONE else set(order[: order.index(module)])
        for sibling, file, line in imported(package, module):
            if sibling not in allowed | {module}:
                found.append(f"{file}:{line}: {module} imports {sibling}, which is not below it")
    return found
