//! The certificates of the server: from files, or made and rotated in a Secret.

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
