//! The header of a file, and the reasons for which a file is not used.

use std::io;
use std::sync::Arc;

use lariat_core::{ResourceVersion, describe};
use lariat_seal::SealError;
use serde::{Deserialize, Serialize};

/// The header of a file: what must match for the file to be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The version of the format, increased when earlier files can no longer be read.
    pub(super) format: u32,
    /// The uid of the namespace `kube-system`, which identifies a cluster.
    pub(crate) cluster: String,
    pub(super) kind: String,
    /// The selection, and how objects are changed before they are saved.
    pub(super) reading: String,
    pub(crate) version: String,
    pub(crate) objects: usize,
}

pub(crate) const FORMAT: u32 = 1;

/// The reason for which a file is not used; the kind is listed then.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Cold {
    #[error("there is no file of an earlier run")]
    NoFile,
    #[error("Secrets are not saved without a key")]
    NoKey,
    #[error("the API server does not identify its cluster: {0}")]
    UnknownCluster(String),
    #[error("the file is from another cluster")]
    OtherCluster,
    #[error("the file was written with other options, or by another version of Lariat")]
    OtherOptions,
    #[error("the file is damaged: {0}")]
    Damaged(String),
    #[error("the file cannot be read or written: {0}")]
    Io(#[from] io::Error),
    #[error("{}", describe(&**.0))]
    Keys(Arc<SealError>),
}

impl Cold {
    /// Returns whether something is broken, rather than absent or different.
    pub(crate) fn is_fault(&self) -> bool {
        matches!(self, Self::Damaged(_) | Self::Io(_) | Self::Keys(_))
    }
}

impl From<SealError> for Cold {
    fn from(error: SealError) -> Self {
        Self::Keys(Arc::new(error))
    }
}

/// The objects of an earlier run, and their version.
pub(crate) struct Found {
    pub(crate) version: ResourceVersion,
    pub(crate) objects: Vec<Box<[u8]>>,
}
