//! Rewrites stored objects in the storage version of their kind.

mod error;
mod migration;
mod report;

pub use error::MigrationError;
pub use migration::StorageMigration;
pub use report::MigrationReport;
