//! The API as a client sees it, over the in-process service and on paused time.

mod bench;

mod abuse;
mod access;
mod actions;
mod admin;
mod admission;
mod answers;
mod autoscaling;
mod bindings;
mod bodies;
#[cfg(feature = "protobuf")]
mod client_go;
mod compression;
mod custom_handlers;
mod customs;
mod cut_off;
mod default_classes;
#[cfg(feature = "sqlite")]
mod definition_paths;
mod deletion;
mod denials;
#[cfg(feature = "descriptions")]
mod descriptions;
#[cfg(feature = "workloads")]
mod determinism;
#[cfg(feature = "workloads")]
mod determinism_lines;
#[cfg(feature = "workloads")]
mod determinism_steps;
mod devices;
mod discovery;
mod establishing;
mod fault_bodies;
mod fault_clients;
mod fault_reads;
mod fault_replies;
mod fault_rules;
mod fault_watches;
mod fault_writes;
mod flow_schemas;
#[cfg(feature = "workloads")]
mod fuzz;
#[cfg(feature = "workloads")]
mod fuzz_objects;
#[cfg(feature = "workloads")]
mod fuzz_requests;
mod garbage;
mod history;
mod informer;
mod inspector;
#[cfg(feature = "signatures")]
mod issuer;
mod journal;
mod kinds;
#[cfg(feature = "load")]
mod loaded;
mod metadata;
mod namespaces;
mod negotiation;
mod open_schemas;
mod own_objects;
mod pages;
mod paths;
#[cfg(feature = "sqlite")]
mod persistence;
#[cfg(feature = "sqlite")]
mod persistence_faults;
mod pod_nodes;
mod pod_security;
mod policies;
#[cfg(feature = "protobuf")]
mod protobuf;
mod quotas;
mod reads;
mod services;
mod snapshots;
mod sockets;
mod storage_limits;
mod stored_objects;
mod tables;
mod tokens;
mod unserving;
mod version_defaults;
mod watches;
#[cfg(feature = "webhooks")]
mod webhooks;
#[cfg(feature = "workloads")]
mod workloads;
#[cfg(feature = "workloads")]
mod workloads_cron;
#[cfg(feature = "workloads")]
mod workloads_jobs;
#[cfg(feature = "workloads")]
mod workloads_network;
#[cfg(feature = "workloads")]
mod workloads_refused;
#[cfg(feature = "workloads")]
mod workloads_rollout;
mod writes;
mod yaml_bodies;
