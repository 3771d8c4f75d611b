//! Requests to the API server, counted for metrics.

mod client;
mod totals;

pub use client::CountedClient;
pub(crate) use totals::ServerSlot;
pub use totals::{RequestCount, RequestStatus, RequestTimes};
