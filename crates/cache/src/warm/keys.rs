//! The keyrings of sealed files: the one of this run, and those of earlier runs.

use std::sync::Arc;
use std::time::Duration;

use lariat_core::Gvk;
use lariat_seal::{Keyring, SealError, Sealing, WrapError};
use tokio::sync::Mutex;
use tokio::time::{self, Instant};

use super::Cold;

/// The timeout for a key management service.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a failed service is not called again: every kind would wait for it in turn.
const REST: Duration = Duration::from_secs(30);

/// The keys of sealed files.
///
/// Each run has its own keyring, which is at the beginning of every file that it writes. So files need nothing beside
/// them, and a new wrapping key is used from the next stop on. The keyring of a run is created at its start, when there
/// is time to wait for the service that wraps keys.
pub(super) struct Keys {
    sealing: Sealing,
    /// Locked while the wrapper is called, so that one call serves all kinds.
    rings: Mutex<Rings>,
}

#[derive(Default)]
struct Rings {
    own: Option<Arc<Keyring>>,
    /// The last one that was loaded from a file; most often all files have the same.
    earlier: Option<Arc<Keyring>>,
    /// When the wrapper last failed, and its error.
    failed: Option<(Instant, Arc<SealError>)>,
}

impl Keys {
    pub(super) fn new(sealing: Sealing) -> Self {
        Self {
            sealing,
            rings: Mutex::default(),
        }
    }

    pub(super) fn seals(&self, gvk: &Gvk) -> bool {
        self.sealing.seals(gvk)
    }

    /// Returns the keyring of this run, created if necessary.
    pub(super) async fn own(&self) -> Result<Arc<Keyring>, Cold> {
        let wrapper = self.sealing.wrapper();
        let mut rings = self.rings.lock().await;
        if let Some(own) = rings.own.as_ref().filter(|own| own.is_wrapped_by(wrapper)) {
            return Ok(Arc::clone(own));
        }
        let created = self.ask(&mut rings, Keyring::create(wrapper)).await?;
        rings.own = Some(Arc::clone(&created));
        Ok(created)
    }

    /// Returns the keyring that is at the beginning of a file.
    pub(super) async fn of(&self, stored: &[u8]) -> Result<Arc<Keyring>, Cold> {
        let mut rings = self.rings.lock().await;
        let known = [&rings.own, &rings.earlier].into_iter().flatten();
        if let Some(known) = known.into_iter().find(|ring| ring.stored() == stored) {
            return Ok(Arc::clone(known));
        }
        let loading = Keyring::load(stored, self.sealing.wrapper());
        let loaded = self.ask(&mut rings, loading).await?;
        rings.earlier = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    async fn ask(
        &self,
        rings: &mut Rings,
        asking: impl Future<Output = Result<Keyring, SealError>>,
    ) -> Result<Arc<Keyring>, Cold> {
        let failed = rings.failed.as_ref();
        if let Some((_, error)) = failed.filter(|(at, _)| at.elapsed() < REST) {
            return Err(Cold::Keys(Arc::clone(error)));
        }
        let late = |_| WrapError::Failed {
            key: self.sealing.wrapper().current(),
            source: "no answer within ten seconds".into(),
        };
        let answer = time::timeout(ANSWER_TIMEOUT, asking).await;
        match answer.map_err(late).map_err(SealError::from).flatten() {
            Ok(keyring) => {
                rings.failed = None;
                Ok(Arc::new(keyring))
            }
            Err(error) => {
                // A key that the wrapper does not have affects the files of one run; a failed service affects all.
                let is_failure = matches!(&error, SealError::Wrap(WrapError::Failed { .. }));
                let error = Arc::new(error);
                if is_failure {
                    rings.failed = Some((Instant::now(), Arc::clone(&error)));
                }
                Err(Cold::Keys(error))
            }
        }
    }
}
