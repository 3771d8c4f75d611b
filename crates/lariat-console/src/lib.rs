//! Metrics, probes and a console for controllers: what runs, what waits, and why.
//!
//! [`api`] has the types of the JSON API, which the console's page and `lariat top` read.

pub mod api;
mod page;
