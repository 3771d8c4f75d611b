//! The files and the context that a configuration was read from.

use std::path::{Path, PathBuf};

use kube::Config;

use super::{Kubeconfig, Unusable};

/// The files and the context that a configuration was read from.
///
/// When the server refuses the credentials, the files are read again. The context stays the one with which the client
/// was created, because another context belongs to another user and often to another cluster.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    paths: Vec<PathBuf>,
    context: String,
}

impl Origin {
    /// Reads the configuration of the current context.
    pub(crate) fn open(paths: Vec<PathBuf>) -> Result<(Self, Config), Unusable> {
        let kubeconfig = Kubeconfig::read(&paths)?;
        let config = kubeconfig.settle().map_err(unusable)?;
        let context = kubeconfig.current_name().map_err(unusable)?.to_owned();
        Ok((Self { paths, context }, config))
    }

    /// Reads the configuration of the same context again, which may not be current.
    pub(crate) fn reread(&self) -> Result<Config, Unusable> {
        let kubeconfig = Kubeconfig::read(&self.paths)?;
        kubeconfig.settle_context(&self.context).map_err(unusable)
    }

    /// Returns the first file.
    pub(crate) fn path(&self) -> &Path {
        self.paths.first().map_or(Path::new(""), |path| path)
    }

    /// Returns the name of the context.
    pub(crate) fn context(&self) -> &str {
        &self.context
    }
}

fn unusable(detail: String) -> Unusable {
    Unusable { path: None, detail }
}
