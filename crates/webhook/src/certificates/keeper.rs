//! Keeps the served certificate up to date.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lariat_core::{clock, describe};
use rustls::pki_types::ServerName;
use tokio::time;

use super::error::CertificateError;
use super::files::{Contents, Files};
use super::rotation::Record;
use super::secret::Shared;
use super::shown::Shown;
use crate::alerts::{Alerts, Subject};

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
    pub(super) async fn of_files(
        files: Files,
        period: Duration,
        endpoint: Option<ServerName<'static>>,
    ) -> Result<Self, CertificateError> {
        // The first read must succeed: a server without a certificate cannot answer.
        let contents = files.read().await?;
        let shown = Shown::new(files.served(&contents)?, endpoint);
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
        endpoint: Option<ServerName<'static>>,
    ) -> Result<Self, CertificateError> {
        let record = shared.settle(now(), None, None).await?;
        let shown = Shown::new(shared.served(&record)?, endpoint);
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
    pub(crate) async fn run(mut self, alerts: Alerts) {
        loop {
            time::sleep(self.period).await;
            let looked = self.look().await;
            alerts.set(Subject::Renewal, looked.map_err(|error| describe(&error)));
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
                    return Ok(());
                }
                self.shown.replace(files.served(&contents)?);
                *last = contents;
                tracing::info!("the certificate of the webhooks was reloaded");
            }
            Kept::Secret(kept) => {
                let (shared, last) = &mut **kept;
                // Reported to the rotation, which lets the next certificate be used only after its authority was
                // injected.
                let injected = self.shown.injected();
                let record = shared
                    .settle(now(), injected.as_deref(), Some(last))
                    .await?;
                if record == *last {
                    return Ok(());
                }
                self.shown.replace(shared.served(&record)?);
                *last = record;
                tracing::info!(secret = %shared.key, "the certificates of the webhooks have changed");
            }
        }
        Ok(())
    }
}

pub(super) fn now() -> Timestamp {
    clock::now().try_into().unwrap_or(Timestamp::MAX)
}
