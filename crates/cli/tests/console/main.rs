//! `lariat top`, `why` and `status`, as a user runs them.

#![cfg(unix)]

#[path = "../../src/console/samples.rs"]
mod samples;
mod scripted;
#[path = "../../src/testing/tmux.rs"]
mod tmux;

mod commands;
mod program;
mod terminal;
