//! Admission: what is asked before something is stored.
//!
//! Source: `k8s.io/apiserver/pkg/admission`.

mod authorizer;
mod chain;
mod mutation;
mod mutation_policies;
mod params;
mod policies;
mod question;
mod request;
mod selection;
mod validation;

pub(crate) use request::Request;
