mod bench;

mod delays;
mod lanes;
mod lifecycle;
mod numbers;
mod priorities;
mod queueing;

mod against_model;
mod model;
