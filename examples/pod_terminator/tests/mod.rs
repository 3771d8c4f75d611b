//! PodTerminators, with the numbers of the original, and where this differs.

mod bench;
mod lifecycle;
mod rounds;
mod told;
