//! Kubernetes Events: counted rather than repeated, few, and there if they must be.

mod events;

pub(super) use events::Events;
