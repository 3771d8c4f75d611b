//! The webhooks of a program.

mod names;
mod webhooks;

pub use webhooks::Webhooks;
