//! The columns of built-in kinds: a table of them (`columns.txt`), and functions for cells that are computed.

mod autoscaling;
mod columns;
mod events;
mod functions;
mod networking;
mod nodes;
mod parts;
mod pods;
mod policy;
mod references;
mod row;
mod selectors;
mod storage;
#[cfg(test)]
mod tests;
mod workloads;

pub(super) use columns::columns;
pub(super) use pods::conditions;
