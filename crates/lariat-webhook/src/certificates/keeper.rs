//! Keeps the served certificate up to date.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lariat_core::{clock, describe};
use tokio::time;

use super::error::CertificateError;
use super::files::{Contents, Files};
use super::rotation::Record;
use super::secret::Shared;
use super::shown::Shown;

/// Reads the source of the certificates periodically, and replaces the served one.
pub(crate) struct Keeper {
    shown: Arc<Shown>,
    kept: Kept,
    period: Duration,
}

/// The source of the certificates, with what was read last.
enum Kept {
    Files(Files, Contents),
    Secret(Box<(Shared, Record)>),
}

impl Keeper {
    pub(super) async fn of_files(files: Files, period: Duration) -> Result<Self, CertificateError> {
        // The first read must succeed: a server without a certificate could not answer anybody.
        let contents = files.read().await?;
        let shown = Shown::new(files.pair(&contents)?);
        let kept = Kept::Files(files, contents);
        Ok(Self {
            shown,
            kept,
            period,
        })
    }

    pub(super) async fn of_secret(
        shared: Shared,
        period: Duration,
    ) -> Result<Self, CertificateError> {
        let record = shared.settle(now(), None).await?;
        let shown = Shown::new(shared.pair(&record)?);
        let kept = Kept::Secret(Box::new((shared, record)));
        Ok(Self {
            shown,
            kept,
            period,
        })
    }

    pub(crate) fn shown(&self) -> Arc<Shown> {
        Arc::clone(&self.shown)
    }

    /// Checks the source periodically, for ever.
    ///
    /// Each new problem is logged once.
    pub(crate) async fn run(mut self) {
        loop {
            time::sleep(self.period).await;
            if let Err(error) = self.look().await {
                let problem = describe(&error);
                // Logged when the problem is new, not at every check.
                if self.shown.failed(problem.clone()) {
                    tracing::warn!("cannot replace the certificate of the webhooks: {problem}");
                }
            }
        }
    }

    /// Checks the source once.
    ///
    /// What was read is remembered only if it could be used, so that a bad file is tried again.
    async fn look(&mut self) -> Result<(), CertificateError> {
        match &mut self.kept {
            Kept::Files(files, last) => {
                let contents = files.read().await?;
                // Compared by content, so that a file that was only touched is not a new certificate.
                if contents == *last {
                    self.shown.is_current();
                    return Ok(());
                }
                self.shown.replace(files.pair(&contents)?);
                *last = contents;
                tracing::info!("the certificate of the webhooks was reloaded");
            }
            Kept::Secret(kept) => {
                let (shared, last) = &mut **kept;
                // Reported to the rotation, which lets the next certificate be used only after its authority was
                // injected.
                let injected = self.shown.injected();
                let record = shared.settle(now(), injected.as_deref()).await?;
                if record == *last {
                    self.shown.is_current();
                    return Ok(());
                }
                self.shown.replace(shared.pair(&record)?);
                *last = record;
                tracing::info!(secret = %shared.key, "the certificates of the webhooks have changed");
            }
        }
        Ok(())
    }
}

fn now() -> Timestamp {
    clock::now().try_into().unwrap_or(Timestamp::MAX)
}
