//! The certificates of the server: from files, or generated and rotated in a Secret.
//!
//! [`Certificates`] chooses the source and loads the first certificate. A [`Keeper`] then reads the source
//! periodically: `files`, or the `secret`, where `rotation` decides which certificates to `generate`. The TLS stack
//! takes a `pair` from [`Shown`] at each handshake, by the name that the client calls, so a replacement needs no
//! restart. A pair's `validity` says whether it can be shown.

mod certificates;
mod error;
mod files;
mod generate;
mod keeper;
mod pair;
mod rotation;
mod secret;
mod shown;
mod validity;

pub use certificates::Certificates;
pub use error::CertificateError;

pub(crate) use keeper::Keeper;
pub(crate) use shown::Shown;
