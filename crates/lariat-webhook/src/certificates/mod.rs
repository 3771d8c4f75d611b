//! The certificates of the server: from files, or generated and rotated in a Secret.
//!
//! [`Certificates`] chooses the source and loads the first certificate. A [`Keeper`] then reads the source
//! periodically: `files`, or the `secret`, where `rotation` decides which certificates to `generate`. The TLS stack
//! takes the served certificate from [`Shown`] at each handshake, so a replacement needs no restart.

mod certificates;
mod error;
mod files;
mod generate;
mod keeper;
mod pair;
mod rotation;
mod secret;
mod shown;

pub use certificates::Certificates;
pub use error::CertificateError;

pub(crate) use keeper::Keeper;
pub(crate) use shown::Shown;
