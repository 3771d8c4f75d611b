//! Indexes: lookups by labels, by owner and by functions of the user, rather than by key.

mod custom;
mod indexes;
mod labels;
mod posting;

pub(crate) use custom::IndexFn;
pub(super) use custom::{CustomIndex, Values, values};
pub(super) use indexes::Indexes;
pub(super) use labels::LabelIndex;
