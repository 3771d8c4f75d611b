//! The kinds of the core group.

mod config;

pub(super) use config::{config_map, secret};
