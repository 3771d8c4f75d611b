//! The kubeconfig of `--kubeconfig`: the cluster's entries are added at the start, and removed at the end.
//!
//! As with kind, the file usually has entries of other clusters.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use lariat_core::yaml;
use serde_json::Value;

use super::file::Lock;

/// A kubeconfig that may have entries of other clusters.
#[derive(Debug)]
pub(crate) struct Kubeconfig {
    /// As the user named it.
    path: PathBuf,
}

impl Kubeconfig {
    /// Opens a file, which need not exist.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is no kubeconfig, or has a `lariat` that this program did not write.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let kubeconfig = Self {
            path: path.to_owned(),
        };
        let mut config = kubeconfig.read(&kubeconfig.target()?)?;
        // A trial whose result is dropped: a file that cannot be changed is reported before the cluster starts.
        kubeconfig.change(&mut config, |config| {
            super::entries::merge(config, &Value::Null)
        })?;
        Ok(kubeconfig)
    }

    /// Replaces the entries of an earlier cluster, and selects the context.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open), or the file cannot be written; then it is as it was.
    pub(crate) async fn merge(&self, own: &str) -> Result<()> {
        let own = serde_json::from_str(own).context("the kubeconfig of the cluster is no JSON")?;
        self.rewrite(|config| super::entries::merge(config, &own).map(|()| true))
            .await
    }

    /// Removes the entries of a cluster, unless another one has replaced them.
    ///
    /// # Errors
    ///
    /// Those of [`merge`](Self::merge).
    pub(crate) async fn remove(&self, url: &str) -> Result<()> {
        // Without changes the file is not written.
        if !super::entries::remove(&mut self.read(&self.target()?)?, url) {
            return Ok(());
        }
        self.rewrite(|config| Ok(super::entries::remove(config, url)))
            .await
    }

    /// Changes the file, if the function says that it has changed the content.
    async fn rewrite(&self, change: impl FnOnce(&mut Value) -> Result<bool, String>) -> Result<()> {
        let unwritable = || format!("cannot write the kubeconfig {}", self.path.display());
        let target = self.target()?;
        // kubectl and kind hold the same lock while they change the file.
        let _lock = Lock::acquire(&target).await.with_context(unwritable)?;
        // Read again under the lock, since others may have changed the file meanwhile.
        let mut config = self.read(&target)?;
        if self.change(&mut config, change)? {
            let text = yaml::write(&config);
            super::file::write(&target, &text).with_context(unwritable)?;
        }
        Ok(())
    }

    fn change<T>(
        &self,
        config: &mut Value,
        change: impl FnOnce(&mut Value) -> Result<T, String>,
    ) -> Result<T> {
        change(config).map_err(|error| anyhow!("the kubeconfig {} {error}", self.path.display()))
    }

    /// Returns the file that a symlink leads to, which is the one to replace.
    fn target(&self) -> Result<PathBuf> {
        let target = super::file::target(&self.path);
        target.with_context(|| format!("cannot read the kubeconfig {}", self.path.display()))
    }

    /// Reads the file, `null` if it does not exist. Errors do not show its content, which has credentials.
    fn read(&self, target: &Path) -> Result<Value> {
        let path = self.path.display();
        let bytes = super::file::read(target)
            .with_context(|| format!("cannot read the kubeconfig {path}"))?;
        let text = String::from_utf8(bytes.unwrap_or_default())
            .map_err(|_| anyhow!("the kubeconfig {path} is no text"))?;
        if text.trim().is_empty() {
            return Ok(Value::Null);
        }
        // Only the line of the error is shown: its text quotes the file.
        let config = yaml::read(&text).map_err(|error| {
            let line = error.line();
            anyhow!(
                "the kubeconfig {path} cannot be read as YAML, see line {line}; it stays as it is"
            )
        })?;
        ensure!(
            config.is_object() || config.is_null(),
            "the kubeconfig {path} is no kubeconfig; it stays as it is"
        );
        Ok(config)
    }
}
