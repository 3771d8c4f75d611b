//! The strategies of kinds: defaults, validation and admission before objects are stored.
//!
//! These are the strategies of a real server's registry.

mod accounts;
mod admission;
mod aggregation;
mod autoscalers;
mod builtin;
mod check;
mod conditions;
mod custom;
mod decode;
mod finalizers;
mod growth;
mod limits;
mod metadata;
mod owners;
mod part;
mod pod_nodes;
mod prepare;
mod replacement;
mod restricted;
mod shape;
mod special;
pub(crate) mod view;

pub(crate) use admission::{CLAIM_PROTECTION, VOLUME_PROTECTION, admit_create, admit_update};
pub(crate) use aggregation::{AGGREGATION_RULE, RolePart, aggregated};
pub(crate) use autoscalers::in_second;
pub(crate) use builtin::runtime_classes::check_overhead;
pub(crate) use builtin::workloads::read_annotations;
pub(crate) use check::check;
pub(crate) use conditions::{set_condition, status_mut};
pub(crate) use custom::{complete, prune, refine_stored, store, type_mismatch};
pub(crate) use decode::{read, read_applied};
pub(crate) use finalizers::{FOREGROUND, ORPHAN, finalizers_in_spec};
pub(crate) use growth::check_growth;
pub(crate) use lariat_apimachinery::selector::selector_text;
pub(crate) use limits::{check_limits, check_quotas, used};
pub(crate) use metadata::{normalize_metadata, raise_generation};
pub(crate) use owners::deduplicate as deduplicate_owners;
pub(crate) use part::Part;
#[cfg(any(feature = "load", feature = "workloads"))]
pub(crate) use pod_nodes::NODE_FEATURES;
#[cfg(feature = "workloads")]
pub(crate) use pod_nodes::set_topology;
pub(crate) use pod_nodes::{check_node, copy_topology};
pub(crate) use prepare::{
    allocate, prepare_create, profile_warnings, refuse_new, refuse_status, stamp,
};
pub(crate) use replacement::{Replacement, keeps_metadata, replacement, replacement_as_sent};
pub(crate) use shape::{check as check_shape, shape_error};
pub(crate) use special::{check_delete, check_delete_of};
