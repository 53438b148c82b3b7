"""The paper's algorithms on small vocabularies, as readable truth.

Read in this order: `bpe` (vocabularies, merge and demerge), `viability` (what may follow),
`models` and `laws` (what counts), `brute` (the truth by enumeration), `relative` (one vocabulary
as the alphabet of another), `covers` (Algorithm 2), `subtokens` (Algorithm 3), `conversion`
(Algorithm 1, and any vocabulary to any other), `beam` (appendix C.1).  The proofs stand in
docs/theory/paper.md.
"""

from crosstok.reference.beam import (
    beam_probability,
    draw_text,
    sample_next_token,
    search_beams,
)
from crosstok.reference.bpe import (
    EOS,
    LatePart,
    LocalSplitter,
    NotLocal,
    Pair,
    ReferenceRefusal,
    RegexSplitter,
    SmallBpe,
    Splitter,
    Token,
    Tokens,
    UndecodableBytes,
    UnknownCharacter,
    byte_name,
    demerge,
    merge,
)
from crosstok.reference.brute import (
    CONTROL,
    DEAD_END,
    UNDECODABLE,
    BruteForce,
    native_endings,
    probability_over_texts,
)
from crosstok.reference.conversion import (
    ByteView,
    atom_probability,
    convert_probability,
    convert_through_bytes,
    subset_probability,
)
from crosstok.reference.covers import PrefixEncodings, relative_cover_search
from crosstok.reference.laws import (
    CanonicalLaw,
    DeadEnd,
    Law,
    RawLaw,
    given_ids_probability,
)
from crosstok.reference.models import GivenTable, Model, NgramLM, Row, TableLM
from crosstok.reference.relative import relative_decode, relative_encode
from crosstok.reference.subtokens import (
    SubsetModel,
    cover_construction,
    first_subtoken,
    next_subtoken,
    subtoken_mass,
    valid_row,
)
from crosstok.reference.viability import (
    REJECT,
    characters,
    continuations,
    is_viable,
    is_viable_by_search,
    outcomes,
    settled,
    viable_next,
)

__all__ = [
    "CONTROL",
    "DEAD_END",
    "EOS",
    "REJECT",
    "UNDECODABLE",
    "BruteForce",
    "ByteView",
    "CanonicalLaw",
    "DeadEnd",
    "GivenTable",
    "LatePart",
    "Law",
    "LocalSplitter",
    "Model",
    "NgramLM",
    "NotLocal",
    "Pair",
    "PrefixEncodings",
    "RawLaw",
    "ReferenceRefusal",
    "RegexSplitter",
    "Row",
    "SmallBpe",
    "Splitter",
    "SubsetModel",
    "TableLM",
    "Token",
    "Tokens",
    "UndecodableBytes",
    "UnknownCharacter",
    "atom_probability",
    "beam_probability",
    "byte_name",
    "characters",
    "continuations",
    "convert_probability",
    "convert_through_bytes",
    "cover_construction",
    "demerge",
    "draw_text",
    "first_subtoken",
    "given_ids_probability",
    "is_viable",
    "is_viable_by_search",
    "merge",
    "native_endings",
    "next_subtoken",
    "outcomes",
    "probability_over_texts",
    "relative_cover_search",
    "relative_decode",
    "relative_encode",
    "sample_next_token",
    "search_beams",
    "settled",
    "subset_probability",
    "subtoken_mass",
    "valid_row",
    "viable_next",
]
