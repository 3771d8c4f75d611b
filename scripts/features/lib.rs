//! Empty: the package is its dependencies, which `scripts/features.py` writes.
