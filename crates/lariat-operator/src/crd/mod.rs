//! Custom resource definitions (CRDs), which a start installs before anything needs them.

mod compare;
mod ensure;
mod error;
mod json;
mod options;
mod report;
mod requests;
mod versions;

pub use ensure::ensure_crds;
pub use error::{CrdError, InstallError};
pub use options::{CrdOptions, Install, with_crd_version};
pub use report::{CrdChange, CrdMismatch, CrdReport};
