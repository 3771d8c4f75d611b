//! Admission: what is asked before something is stored.
//!
//! Source: `k8s.io/apiserver/pkg/admission`.

mod authorizer;
mod call;
mod chain;
mod mutation;
mod mutation_policies;
mod params;
mod pod_security;
mod policies;
mod request;
mod selection;
mod validation;

pub(crate) use pod_security::{check_changed_pods, check_new_pods};
pub(crate) use request::Request;
