//! The verbs: what happens to objects.

mod admission;
mod admit;
mod answer;
mod call;
mod continuation;
mod create;
mod creation;
mod decode;
mod delete;
mod delete_options;
mod delete_rules;
mod dispatch;
mod escalation;
mod fields;
mod list;
mod normalize;
mod ownership;
mod patch;
mod read;
mod reviews;
mod schemes;
mod signers;
mod storage_limits;
mod subresources;
mod update;
mod watch;

pub(crate) use crate::status::Warnings;
pub(crate) use answer::{Answer, Success};
pub(crate) use call::Call;
pub(crate) use creation::Creation;
pub(crate) use delete::{delete_as, delete_once, remove};
pub(crate) use delete_rules::{Deletion, Propagation};
pub(crate) use list::ListPage;
pub(crate) use ownership::{account_as, apply_as};
#[cfg(feature = "fuzzing")]
pub(crate) use patch::patched;
pub(crate) use update::replace;
pub(crate) use watch::{WatchEvent, Watcher};
