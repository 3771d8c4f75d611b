//! Nothing: only the dependencies matter, which `scripts/features.py` writes.
