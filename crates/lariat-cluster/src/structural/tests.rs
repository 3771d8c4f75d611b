//! Tables of what schemas do.
