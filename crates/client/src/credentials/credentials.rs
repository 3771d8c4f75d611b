//! The credentials that requests ask for.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use kube::Config;
use parking_lot::Mutex;
use tokio::task;

use super::error::{CredentialError, Refusal};
use super::login::Login;
use super::source::{Known, ReadReason, Source};
use crate::kubeconfig::Origin;
use crate::single::Single;
use crate::socket::Offer;

/// The result of a read.
type Attempt = Result<Arc<Login>, CredentialError>;

/// The credentials of a configuration.
pub(crate) struct Credentials {
    source: Arc<Source>,
    reading: Single<Attempt>,
    /// The read in the background, which no request waits for.
    renewal: Mutex<Option<Shared<BoxFuture<'static, Attempt>>>>,
}

impl Credentials {
    /// Reads the credentials of a configuration.
    ///
    /// `origin` is read again when they are refused.
    pub(crate) async fn read(
        config: Config,
        origin: Option<Origin>,
        offers_http2: bool,
    ) -> Result<Self, CredentialError> {
        let offer = if offers_http2 {
            Offer::Http2OrHttp1
        } else {
            Offer::Http1
        };
        let credentials = Self {
            source: Arc::new(Source::new(config, origin, offer)),
            reading: Single::new(),
            renewal: Mutex::default(),
        };
        credentials.current().await?;
        Ok(credentials)
    }

    /// Returns the current credentials; reads files or runs plugins if due.
    ///
    /// A plugin is waited for only if its credential has expired; before, it runs in the background.
    pub(crate) async fn current(&self) -> Attempt {
        match self.source.known() {
            Known::Fresh(login) => return Ok(login),
            Known::Due(login) => {
                self.renew();
                return Ok(login);
            }
            Known::Stale => {}
        }
        self.join(ReadReason::Age).await
    }

    /// Returns the credentials that were read last, valid or not.
    pub(crate) fn known(&self) -> Option<Arc<Login>> {
        self.source.last()
    }

    /// Returns credentials without running an exec plugin, which may take long.
    pub(crate) async fn at_hand(&self) -> Attempt {
        match self.known().filter(|_| self.source.has_plugin()) {
            Some(login) => Ok(login),
            None => self.current().await,
        }
    }

    /// Returns other credentials than the refused ones.
    ///
    /// `None` if there are none.
    pub(crate) async fn after_refusal(
        &self,
        refused: &Arc<Login>,
        refusal: Refusal,
    ) -> Option<Arc<Login>> {
        if let Some(newer) = self.source.newer_than(refused) {
            return Some(newer);
        }
        self.forget_renewal();
        // Joins a read in progress. It may have ended since the check above, so the check is repeated.
        let reading = self.reading.join_or((), || {
            let newer = self.source.newer_than(refused);
            let starts = newer.is_none() && self.source.may_read_again(refusal);
            starts
                .then(|| self.reading_for(ReadReason::Refused(refusal)))
                .ok_or(newer)
        });
        match reading {
            Ok(reading) => {
                *self.renewal.lock() = Some(reading.clone());
                reading.await.ok()
            }
            Err(newer) => newer,
        }
    }

    /// Returns whether the credentials can change.
    pub(crate) fn can_change(&self) -> bool {
        self.source.can_change()
    }

    /// Reads the credentials in the background, unless they are being read.
    fn renew(&self) {
        drop(self.join(ReadReason::Age));
    }

    /// Joins the read in progress, or starts one.
    fn join(&self, reason: ReadReason) -> Shared<BoxFuture<'static, Attempt>> {
        self.forget_renewal();
        let attempt = self.reading.join((), || self.reading_for(reason));
        // Kept until it has ended: requests that give up waiting must not start another read beside it.
        *self.renewal.lock() = Some(attempt.clone());
        attempt
    }

    /// Drops a read in the background that has ended, so that its result is not taken for that of a new one.
    fn forget_renewal(&self) {
        let mut renewal = self.renewal.lock();
        // Nobody has polled it, so it does not know its own end.
        let has_ended = |attempt: &mut Shared<_>| attempt.clone().now_or_never().is_some();
        drop(renewal.take_if(has_ended));
    }

    /// Reads everything on a blocking thread.
    ///
    /// The read runs to its end and its result is kept, even if all requests that wait for it are cancelled.
    fn reading_for(&self, reason: ReadReason) -> BoxFuture<'static, Attempt> {
        let source = Arc::clone(&self.source);
        let read = task::spawn_blocking(move || source.read(reason));
        let ended = |read: Result<_, task::JoinError>| {
            read.unwrap_or_else(|error| Err(CredentialError::Unusable(error.to_string())))
        };
        read.map(ended).boxed()
    }
}
