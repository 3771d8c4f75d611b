//! What kube-rs and its runtime do with the cluster, and the help for tests, which is written with kube.

mod bench;

mod client;
mod controllers;
mod waits;
mod watchers;
