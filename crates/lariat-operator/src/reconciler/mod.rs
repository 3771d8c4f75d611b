//! Reconcilers: what brings the world to what an object says.

mod builder;
mod claims;
mod ends;
mod error;
mod finalizer;
mod gate;
mod guard;
mod needs;
mod policy;
mod register;
mod registration;
mod remembered;
mod run;
mod setup;
mod status;

pub use builder::Reconciler;
pub use error::ReconcilerError;
pub use policy::Retry;
pub use registration::ReconcilerRegistration;
pub(crate) use remembered::Reconcilers;
