//! PodTerminators, with the numbers of the original, and where this differs.

mod bench;
mod events;
mod lifecycle;
mod rounds;
