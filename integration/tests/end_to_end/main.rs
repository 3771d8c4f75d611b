//! Lariat from end to end, over HTTP, on a cluster.

mod books;

mod lifecycle;
mod main_job;
mod scale;
