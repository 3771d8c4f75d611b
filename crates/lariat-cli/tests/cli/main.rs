//! The command line, as a user runs it.

#![cfg(unix)]

mod program;

mod arguments;
mod cluster;
mod kubeconfig;
