//! What PodTerminators do, in the numbers of the original, and where this does better.

mod bench;
mod lifecycle;
mod rounds;
mod told;
