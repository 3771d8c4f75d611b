//! The files that a configuration was read from.

use std::path::{Path, PathBuf};

use kube::Config;

use super::{Kubeconfig, Unusable};

/// The files of a configuration, which are read again when the server refuses what they gave.
#[derive(Debug, Clone)]
pub(in crate::client) struct Origin {
    paths: Vec<PathBuf>,
}

impl Origin {
    pub(in crate::client) fn new(paths: Vec<PathBuf>) -> Self {
        Self { paths }
    }

    /// Reads the configuration of the current context.
    pub(in crate::client) fn read(&self) -> Result<Config, Unusable> {
        let unusable = |detail| Unusable { path: None, detail };
        Kubeconfig::read(&self.paths)?.settle().map_err(unusable)
    }

    /// Returns the first file.
    pub(in crate::client) fn path(&self) -> &Path {
        self.paths.first().map_or(Path::new(""), |path| path)
    }
}
