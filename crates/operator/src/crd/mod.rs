//! Custom resource definitions (CRDs), which a start installs before anything needs them.
//!
//! [`ensure_crds`] is the entry point. `ensure` runs the loop for each CRD, with `requests` for the API server;
//! `compare` finds the differences to the installed one, with `versions` for the list of versions and `json` for the
//! API server's form; `schema` finds the fields that an update adds, until they are published. The result is a `report`
//! or an `error`.

mod compare;
mod ensure;
mod error;
mod json;
mod options;
mod report;
mod requests;
mod schema;
mod versions;

pub use ensure::ensure_crds;
pub use error::{CrdError, InstallError};
pub use options::{CrdOptions, Install, with_crd_version};
pub use report::{CrdChange, CrdMismatch, CrdReport};
