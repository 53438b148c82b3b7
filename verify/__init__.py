"""The heavy suites, at a scale set by ``CROSSTOK_BUDGET``.

Each module here but :mod:`verify.common` is one suite, run as ``python -m verify.NAME``.  It
prints its counts, writes a JSON result when given ``--out FILE``, and exits with a status
other than 0 if it found a violation.  ``python -m verify`` runs them all, which is what
``make verify`` does.
"""
