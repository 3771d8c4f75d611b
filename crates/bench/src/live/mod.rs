//! Benchmarks of subjects that read pods from a server.

mod job;
mod latency;
mod live;
mod reads;
mod relist;
mod storm;
mod sync;

pub(crate) use latency::{
    CASES as LATENCY_CASES, SUBJECTS as LATENCY_SUBJECTS, crowd, plan as plan_latency,
};

pub(crate) use job::{storms, watches_on};
pub(crate) use live::{plan, run};
pub(crate) use reads::{CASES as READ_CASES, SUBJECTS as READ_SUBJECTS, plan as plan_reads};
