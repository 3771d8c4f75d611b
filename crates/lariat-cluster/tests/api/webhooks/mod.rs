//! Webhooks of admission, which are called over TLS.

mod answers;
mod faults;
mod mutating;
mod selection;
mod server;
