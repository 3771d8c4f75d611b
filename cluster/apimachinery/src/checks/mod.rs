//! Parts of validation rules: a value with its path, the causes that are found, formats of texts, parts of metadata.
//!
//! `validation` has the rules of kinds, `structural` those of schemas, and `crd` those of CRDs; all of them add
//! to `Causes`.

pub(crate) mod addresses;
pub(crate) mod causes;
pub(crate) mod equality;
pub(crate) mod field;
pub(crate) mod formats;
pub(crate) mod labels;
pub(crate) mod metadata;
pub(crate) mod rule;
pub(crate) mod structs;
