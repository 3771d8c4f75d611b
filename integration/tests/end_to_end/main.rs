//! Lariat from end to end, over HTTP, on a cluster.

mod books;

#[cfg(unix)]
mod leaders;
mod lifecycle;
mod main_job;
mod scale;
