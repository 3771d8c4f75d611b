//! Credentials: tokens and certificates, renewed before they expire or change.
//!
//! `material` reads what a configuration refers to, `source` when and how often, and `credentials` is asked by
//! requests. A [`Login`] is what was read, and the [`Transport`] has the connections of its certificate.
//!
//! It should go to kube-client: `docs/upstream.md` has the interface, and what is missing there.

mod credentials;
mod error;
mod exec;
mod life;
mod login;
mod material;
mod printed;
mod source;
mod transport;

pub(crate) use credentials::Credentials;
pub(crate) use error::{CredentialError, Refusal};
pub(crate) use login::Login;
pub(crate) use transport::{Http1, Transport};
