//! The kinds of the group `certificates.k8s.io`.

mod conditions;
mod pem;
mod request;

pub(super) use request::signing_request;
