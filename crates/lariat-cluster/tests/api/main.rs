//! The API as a client sees it, over the in-process service and on paused time.

mod bench;

mod abuse;
mod access;
mod actions;
mod admin;
mod autoscaling;
mod bindings;
mod bodies;
mod compression;
mod customs;
#[cfg(feature = "sqlite")]
mod definition_paths;
mod deletion;
mod determinism;
mod determinism_lines;
mod determinism_steps;
mod discovery;
mod establishing;
mod fault_bodies;
mod fault_clients;
mod fault_reads;
mod fault_replies;
mod fault_rules;
mod fault_watches;
mod fault_writes;
mod fuzz;
mod fuzz_objects;
mod fuzz_requests;
mod garbage;
mod informer;
mod journal;
mod kinds;
mod metadata;
mod namespaces;
mod pages;
#[cfg(feature = "sqlite")]
mod persistence;
#[cfg(feature = "sqlite")]
mod persistence_faults;
mod protobuf;
mod reads;
mod services;
mod snapshots;
mod sockets;
mod stored_objects;
mod tables;
mod watches;
mod workloads;
mod workloads_cron;
mod workloads_jobs;
mod workloads_network;
mod workloads_rollout;
mod writes;
