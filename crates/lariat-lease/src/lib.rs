//! Leader election and fenced clients on the leases of Kubernetes.
//!
//! An [`Elector`] acquires and renews a [`Lease`] as client-go's does; its [`Leadership`] says whether this process leads,
//! and makes clients that [write only while it does](Leadership::fence).

mod config;
mod error;
mod record;

mod election;

mod elector;
mod leadership;

mod fence;

pub use config::Lease;
pub use elector::Elector;
pub use error::LeaseError;
pub use fence::Fenced;
pub use leadership::{Leadership, LeaseStatus, Standing};
