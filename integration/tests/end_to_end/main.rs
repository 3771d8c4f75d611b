//! Lariat from end to end, over HTTP, on a cluster.

mod books;
mod lifecycle;
mod main_job;
#[cfg(unix)]
mod replicas;
mod scale;
mod sql;
mod unserved;
mod webhooks;
