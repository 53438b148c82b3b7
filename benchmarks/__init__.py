"""Measurements of speed, against `tokenizers` in the same run: figures, not tests."""
