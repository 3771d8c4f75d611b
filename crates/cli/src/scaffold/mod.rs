//! `lariat new`, `add` and `crd`: a scaffold of an operator, more of what it has, and its CRDs.

mod add;
mod additions;
mod changes;
mod definitions;
mod existing;
mod names;
#[cfg(test)]
mod names_tests;
mod options;
mod own;
mod permissions;
mod project;
mod source;
mod taken;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use add::{AddOptions, run as add};
pub(crate) use definitions::{DefinitionOptions, run as print_definitions};
#[cfg(test)]
pub(crate) use names::{Group, Kind, Name};
pub(crate) use options::Options;
pub(crate) use write::run;
