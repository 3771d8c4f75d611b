//! The entry point: [`Webhooks`], the builder of a program's webhooks.

mod names;
mod webhooks;

pub use webhooks::Webhooks;
