//! When credentials are read, and which result is kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kube::Config;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::error::{CredentialError, Refusal};
use super::exec;
use super::life::Life;
use super::login::Login;
use super::material;
use super::transport::Transport;
use crate::kubeconfig::Origin;
use crate::socket::Offer;
use crate::url;

/// How often files of tokens and certificates are read, as in client-go.
const READ_EVERY: Duration = Duration::from_secs(60);

/// How soon a file that could not be used is read again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The shortest interval between runs of an exec plugin.
///
/// It applies after the API server refused its credential, and after a failed run while the previous credential is
/// still valid.
const RUN_EVERY: Duration = Duration::from_secs(5);

/// The longest interval while refusals go on; it doubles with each run.
const RUN_EVERY_AT_LAST: Duration = Duration::from_secs(60);

/// The shortest interval between reads of the kubeconfig.
const REREAD_EVERY: Duration = Duration::from_secs(10);

/// The credentials of a configuration, and the rules of reading them.
pub(super) struct Source {
    origin: Option<Origin>,
    offer: Offer,
    /// How many transports were created.
    transports: AtomicU64,
    state: Mutex<State>,
}

struct State {
    config: Arc<Config>,
    current: Option<Arc<Login>>,
    /// When the credentials were last read; files are read again after a while.
    read_at: Option<Instant>,
    /// When they were last read because they were refused.
    refused_at: Option<Instant>,
    /// How long after that a plugin may be run for the next refusal.
    run_every: Duration,
    /// When the last read failed and the previous credentials were kept.
    failed_at: Option<Instant>,
    /// When the kubeconfig was last read again.
    reread_at: Option<Instant>,
    /// How many reads have begun.
    begun: u64,
    /// The number of the read that `current` comes from; a later result of an earlier read is dropped.
    kept: u64,
}

/// The reason for reading credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadReason {
    /// They may have changed or expired.
    Age,
    /// They were refused.
    Refused(Refusal),
}

/// The credentials that were read last, and whether they must be read again.
pub(super) enum Known {
    Fresh(Arc<Login>),
    /// They are valid, and should be renewed in the background.
    Due(Arc<Login>),
    Stale,
}

/// A read that has begun.
struct Read {
    number: u64,
    config: Arc<Config>,
    before: Option<Arc<Login>>,
}

impl Source {
    pub(super) fn new(config: Config, origin: Option<Origin>, offer: Offer) -> Self {
        let state = State {
            config: Arc::new(config),
            current: None,
            read_at: None,
            refused_at: None,
            run_every: RUN_EVERY,
            failed_at: None,
            reread_at: None,
            begun: 0,
            kept: 0,
        };
        Self {
            origin,
            offer,
            transports: AtomicU64::new(0),
            state: Mutex::new(state),
        }
    }

    /// Returns the credentials that were read last.
    pub(super) fn known(&self) -> Known {
        let state = self.state.lock();
        let Some(login) = state.current.as_ref().map(Arc::clone) else {
            return Known::Stale;
        };
        if login.life.has_expired() {
            return Known::Stale;
        }
        if login.life.is_due() && !is_within(state.failed_at, RUN_EVERY) {
            return Known::Due(login);
        }
        let is_recent =
            is_within(state.read_at, READ_EVERY) || is_within(state.failed_at, RETRY_AFTER);
        if is_recent || !material::has_files(&state.config) {
            Known::Fresh(login)
        } else {
            Known::Stale
        }
    }

    /// Returns the credentials that were read last, valid or not.
    pub(super) fn last(&self) -> Option<Arc<Login>> {
        self.state.lock().current.clone()
    }

    pub(super) fn newer_than(&self, refused: &Arc<Login>) -> Option<Arc<Login>> {
        self.last().filter(|current| !Arc::ptr_eq(current, refused))
    }

    pub(super) fn has_plugin(&self) -> bool {
        material::plugin(&self.state.lock().config).is_some()
    }

    /// Returns whether the credentials can change.
    pub(super) fn can_change(&self) -> bool {
        let state = self.state.lock();
        self.origin.is_some()
            || material::plugin(&state.config).is_some()
            || material::has_files(&state.config)
    }

    /// Returns whether credentials may be read again because they were refused.
    ///
    /// A plugin runs at intervals only: otherwise it would run for each request of a user without permissions, or
    /// through a balancer without servers.
    pub(super) fn may_read_again(&self, refusal: Refusal) -> bool {
        let mut state = self.state.lock();
        let runs = material::plugin(&state.config).is_some()
            && state
                .current
                .as_ref()
                .is_none_or(|login| !login.keeps_plugin(refusal));
        if runs && is_within(state.refused_at, state.run_every) {
            return false;
        }
        let may_reread = self.origin.is_some() && !is_within(state.reread_at, REREAD_EVERY);
        if !runs && !may_reread && !material::has_files(&state.config) {
            return false;
        }
        let goes_on = runs && is_within(state.refused_at, state.run_every * 2);
        state.run_every = if goes_on {
            RUN_EVERY_AT_LAST.min(state.run_every * 2)
        } else {
            RUN_EVERY
        };
        state.refused_at = Some(Instant::now());
        true
    }

    /// Reads everything, which may take long and blocks the thread.
    pub(super) fn read(&self, reason: ReadReason) -> Result<Arc<Login>, CredentialError> {
        if reason != ReadReason::Age {
            self.reread();
        }
        let read = self.begin();
        let login = self.login(&read, reason);
        self.end(&read, login.map(Arc::new), reason)
    }

    /// Reads the kubeconfig again, which may have other data now.
    fn reread(&self) {
        let Some(origin) = &self.origin else { return };
        let config = {
            let mut state = self.state.lock();
            if is_within(state.reread_at, REREAD_EVERY) {
                return;
            }
            state.reread_at = Some(Instant::now());
            Arc::clone(&state.config)
        };
        let path = origin.path().display();
        match origin.reread() {
            // Requests and connections are made for the server of the beginning.
            Ok(next) if is_same_server(&next, &config) => {
                self.state.lock().config = Arc::new(next);
            }
            Ok(_) => tracing::warn!(
                %path, context = origin.context(),
                "the kubeconfig names another server now; restart to use that one"
            ),
            Err(unusable) => tracing::warn!(
                %path, context = origin.context(), error = unusable.detail,
                "the kubeconfig cannot be read again; the previous credentials are used"
            ),
        }
    }

    fn begin(&self) -> Read {
        let mut state = self.state.lock();
        state.begun += 1;
        Read {
            number: state.begun,
            config: Arc::clone(&state.config),
            before: state.current.clone(),
        }
    }

    fn login(&self, read: &Read, reason: ReadReason) -> Result<Login, CredentialError> {
        let before = read.before.as_deref();
        let (plugin, life) = self.credential(read, reason)?;
        let config = material::read(&read.config, plugin.as_deref(), before.is_none())?;
        let signer = material::signer(&config)?;
        let certificate = material::fingerprint(&config);
        let same = before.filter(|login| login.transport.certificate == certificate);
        let transport = match same {
            Some(login) => Arc::clone(&login.transport),
            None => {
                // A counter, because two reads of the same state may overlap.
                let number = self.transports.fetch_add(1, Ordering::Relaxed);
                Arc::new(Transport::new(&config, self.offer, number, certificate)?)
            }
        };
        Ok(Login {
            signer,
            plugin,
            life,
            has_certificates: self.origin.is_some() || material::has_certificates(&config),
            has_client_certificate: material::has_client_certificate(&config),
            transport,
        })
    }

    /// Returns the credential of the exec plugin, which is run if necessary.
    fn credential(
        &self,
        read: &Read,
        reason: ReadReason,
    ) -> Result<(Option<Arc<exec::Credential>>, Life), CredentialError> {
        let Some(plugin) = material::plugin(&read.config) else {
            return Ok((None, Life::default()));
        };
        let is_good = |login: &&Arc<Login>| {
            let is_refused = match reason {
                ReadReason::Age => false,
                ReadReason::Refused(refusal) => !login.keeps_plugin(refusal),
            };
            login.plugin.is_some() && !is_refused && !login.life.is_due()
        };
        if let Some(login) = read.before.as_ref().filter(is_good) {
            return Ok((login.plugin.clone(), login.life));
        }
        let credential = exec::run(plugin)?;
        let life = Life::of(credential.lasts);
        Ok((Some(Arc::new(credential)), life))
    }

    /// Keeps the result of a read.
    ///
    /// Valid credentials are kept if a file is missing or half-written for a moment, as while it is replaced, or if a
    /// plugin fails once.
    fn end(
        &self,
        read: &Read,
        login: Result<Arc<Login>, CredentialError>,
        reason: ReadReason,
    ) -> Result<Arc<Login>, CredentialError> {
        let mut state = self.state.lock();
        let newer = (read.number < state.kept)
            .then(|| state.current.clone())
            .flatten();
        if let Some(newer) = newer {
            return Ok(newer);
        }
        match (login, &read.before) {
            (Ok(login), _) => {
                state.kept = read.number;
                state.failed_at = None;
                state.read_at = Some(Instant::now());
                state.current = Some(Arc::clone(&login));
                Ok(login)
            }
            (Err(error), Some(before)) if keeps(read, before, reason) => {
                let text = "the credentials cannot be renewed; the previous ones are used";
                // Once, when a series of failures begins.
                if state.failed_at.is_none() {
                    tracing::warn!(%error, "{text}");
                } else {
                    tracing::debug!(%error, "{text}");
                }
                state.failed_at = Some(Instant::now());
                Ok(Arc::clone(before))
            }
            (Err(error), _) => Err(error),
        }
    }
}

/// Returns whether credentials are kept after a failed renewal.
///
/// Refused credentials of a plugin are not: the caller needs the error of the plugin.
fn keeps(read: &Read, before: &Login, reason: ReadReason) -> bool {
    let has_plugin = material::plugin(&read.config).is_some();
    !has_plugin || reason == ReadReason::Age && !before.life.has_expired()
}

/// Returns whether two configurations lead to the same server.
///
/// The proxy and the TLS server name are compared too, because the same address behind another proxy can be another
/// cluster. The user and password of a proxy may differ.
fn is_same_server(one: &Config, other: &Config) -> bool {
    let proxy = |config: &Config| Some(url::split_user(config.proxy_url.clone()?).0);
    one.cluster_url == other.cluster_url
        && one.tls_server_name == other.tls_server_name
        && proxy(one) == proxy(other)
}

/// Returns whether a moment was less than a duration ago.
fn is_within(at: Option<Instant>, duration: Duration) -> bool {
    at.is_some_and(|at| at.elapsed() < duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn later_result_of_an_earlier_read_is_dropped() {
        let config = Config::new(http::Uri::from_static("http://127.0.0.1:1"));
        let source = Source::new(config, None, Offer::Http1);
        let (first, second) = (source.begin(), source.begin());
        let login = |read| source.login(read, ReadReason::Age).map(Arc::new);
        let newer = source.end(&second, login(&second), ReadReason::Age);
        let newer = newer.unwrap();
        let failure = Err(CredentialError::Unusable("too late".to_owned()));
        for late in [login(&first), failure] {
            let kept = source.end(&first, late, ReadReason::Age).unwrap();
            assert!(Arc::ptr_eq(&kept, &newer));
            assert!(source.last().is_some_and(|last| Arc::ptr_eq(&last, &newer)));
        }
    }
}
