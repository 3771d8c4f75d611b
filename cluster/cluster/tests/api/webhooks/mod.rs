//! Webhooks of admission and conversion, which are called over TLS.

mod answers;
mod conversion;
mod faults;
mod mutating;
mod selection;
mod server;
