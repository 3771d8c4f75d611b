//! Kubeconfigs: files are merged, and the entries of the current context are settled, as clientcmd of client-go does.
//!
//! `document` reads a file, `merged` finds entries among several files, `entry` reads the members of one, and `settled`
//! makes the configuration of the current context (`user`, `plugin`); `contained` is for texts that others write.
//! Entries that are not used may be anything. Errors name the file and the entry, never values of secrets. An
//! [`Origin`] is read again when the server refuses what it gave.

mod contained;
mod document;
mod entry;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod merged;
mod origin;
mod plugin;
mod settled;
#[cfg(test)]
mod tests;
mod user;

pub(crate) use document::Unusable;
pub(crate) use merged::Kubeconfig;
pub(crate) use origin::Origin;
