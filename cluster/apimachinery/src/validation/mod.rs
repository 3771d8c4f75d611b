//! Validation as a genuine API server's, kind by kind.
//!
//! [`validate`] finds what is wrong with an object of a built-in kind, as a list of causes: the field, what is the
//! matter, and the API server's message. [`validate_metadata`] does so with the metadata of objects of any kind.
//!
//! [`warnings()`] returns the warnings about an object that is valid; the module of that name has a function per kind.
//!
//! To write a kind: a function of type `Check` in the module of its group, and a line in `decide`. It gets a `Context`
//! (the object, the state it replaces, the part that is written) and adds to `Causes`. Values are read through `Field`,
//! which knows its path, and reads as the zero of its type where nothing is. Rules about single members are tables
//! (`rule`), the forms of texts are functions (`formats`), all in `checks`; rules about several members are functions
//! beside the kind. What held before and is merely kept is let through where the API server does: functions that are
//! stricter with new values get the replaced value too.
//!
//! Source: `k8s.io/kubernetes/pkg/apis/*/validation` and the strategies in `pkg/registry`.

#[cfg(test)]
mod answers;
mod claims;
mod conditions;
mod context;
mod decide;
mod dump;
mod metadata;
mod paths;
mod resources;
mod signers;
#[cfg(test)]
mod testing;
mod unified;

mod admission;
mod apps;
mod authorization;
mod autoscaling;
mod batch;
mod certificates;
mod coordination;
mod core;
mod devices;
mod discovery;
mod flow_control;
mod networking;
mod node;
mod pod;
mod policy;
mod rbac;
mod registration;
mod scheduling;
mod storage;
mod volumes;
mod warnings;

use crate::checks::{addresses, causes, field, formats, labels, rule, structs};

pub use crate::checks::equality::are_equal;
pub(crate) use admission::check_address;
pub use certificates::requested_organizations;
pub use context::Part;
pub use decide::{validate, validate_service_addresses};
pub use metadata::validate_metadata;
pub use pod::quality_of_service;
pub use warnings::{deletion_warning, warnings};
