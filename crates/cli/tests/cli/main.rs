//! The command line, as a user runs it.

#![cfg(unix)]

mod program;

#[path = "../../../sql/tests/http/chromium.rs"]
#[allow(dead_code, reason = "the tests of each crate use other parts of it")]
mod chromium;

mod arguments;
mod cluster;
mod console;
mod console_bench;
mod console_page;
mod kubeconfig;
