//! Admission: what is asked before something is stored.
//!
//! Source: `k8s.io/apiserver/pkg/admission`.

#[cfg_attr(not(feature = "webhooks"), path = "caller_off.rs")]
mod caller;
mod mutation;
mod question;
mod request;
mod selection;
#[cfg(feature = "webhooks")]
mod services;
mod validation;
#[cfg(feature = "webhooks")]
mod verifier;

pub(crate) use request::Request;
