mod bench;

mod admission;
mod delays;
mod lanes;
mod lifecycle;
mod numbers;
mod priorities;
mod queueing;
mod snapshots;

mod against_model;
mod model;
