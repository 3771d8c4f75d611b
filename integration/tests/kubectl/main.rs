//! kubectl against a cluster: what users see of it.
//!
//! The texts are those kubectl prints on a genuine cluster. Its discovery cache is each test's own.

mod apply;
mod ask;
mod cascade;
mod change;
mod connect;
mod kubeconfigs;
mod objects;
mod recorded;
mod rollout;
mod seeds;
mod yaml;
