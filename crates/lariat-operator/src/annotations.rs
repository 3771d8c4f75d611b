//! Keys of annotations that several modules know.

/// The annotation of an applied object with the hash of what was applied.
pub(crate) const APPLIED: &str = "lariat.dev/applied";

/// How the keys of the annotations begin in which owners note their sets; the names of operator and set follow.
pub(crate) const NOTES: &str = "applied.lariat.dev/";
