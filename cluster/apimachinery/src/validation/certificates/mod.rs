//! The kinds of the group `certificates.k8s.io`.

mod certificate;
mod conditions;
mod der;
mod extensions;
mod keys;
mod pem;
mod pkcs10;
mod request;
#[cfg_attr(not(feature = "signatures"), path = "signature_off.rs")]
mod signature;
mod subject;
#[cfg(test)]
mod tests;
mod times;

pub use request::requested_organizations;
pub(super) use request::signing_request;
