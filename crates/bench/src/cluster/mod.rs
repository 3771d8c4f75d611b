//! The embedded cluster itself: how it starts, what it holds, how fast it writes, reads and sends.
//!
//! The server is `lariat cluster` in a process of its own, which has to be built beside this program; the
//! clients are connections of plain HTTP/1.1 in this one. CPU and memory are the server's.

mod bounds;
mod cluster;
mod objects;
mod program;
mod sizes;
mod start;
mod sweep;
mod watches;
mod wire;
mod writes;

pub(crate) use cluster::{CASES, SUBJECTS, plan, run};
