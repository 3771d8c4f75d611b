//! The entry point: [`Webhooks`], the builder of a program's webhooks.
//!
//! `check` finds mistakes in the webhooks, and `serve` starts a server.

mod check;
mod serve;
mod webhooks;

pub use webhooks::Webhooks;
