//! ProcessStates that programs are shown, and that caches hold at rest.

mod caches;
mod content;
mod forward;
mod observation;
mod subscribers;

pub(super) use caches::Caches;
pub(super) use content::TrueStates;
pub(super) use forward::Forward;
pub(super) use observation::{Channel, Observation, since};
pub(super) use subscribers::Subscribers;
