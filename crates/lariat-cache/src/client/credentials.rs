//! What the user of a configuration presents: tokens and certificates, read again when they may have changed.

use std::collections::hash_map::DefaultHasher;
use std::future;
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use hyper_util::client::legacy::{Builder, Client as HyperClient};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::middleware::AuthLayer;
use kube::client::{Body, ConfigExt};
use lariat_core::describe;
use parking_lot::Mutex;
use tokio::task;
use tokio::time::Instant;
use tower::{BoxError, Layer, ServiceExt};

use super::dial::{self, Dialer};
use super::exec::{self, ExecError};
use super::pool::{CONNECTION_WINDOW, PING_AFTER, PING_TIMEOUT, STREAM_WINDOW};
use super::single::Single;
use super::socket::Offer;

/// How often files of tokens and certificates are read: as client-go does.
const READ_EVERY: Duration = Duration::from_secs(60);

/// How long before its end a credential of an exec plugin is replaced, if it lasts long enough.
const MARGIN: Duration = Duration::from_secs(60);

/// How often an exec plugin is run at most because the API server refuses what it gave, or because it failed while what
/// it gave before is still good.
const RUN_EVERY: Duration = Duration::from_secs(5);

type Hyper = HyperClient<Dialer, Body>;

/// A user that cannot present itself: nothing was sent.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum CredentialError {
    #[error(transparent)]
    Exec(#[from] ExecError),
    #[error("the credentials of the configuration cannot be used: {0}")]
    Unusable(String),
}

impl From<kube::Error> for CredentialError {
    fn from(error: kube::Error) -> Self {
        Self::Unusable(describe(&error))
    }
}

/// The credentials of a configuration.
pub(super) struct Credentials {
    source: Arc<Source>,
    reading: Single<Result<Arc<Login>, CredentialError>>,
}

struct Source {
    config: Config,
    /// Whether HTTP/2 is offered to servers.
    offers_http2: bool,
    /// How many transports have been made.
    transports: AtomicU64,
    state: Mutex<Logins>,
}

#[derive(Default)]
struct Logins {
    current: Option<Arc<Login>>,
    /// When it was read last; files are read again after a while.
    read_at: Option<Instant>,
    /// When it was read because the API server refused it.
    refused_at: Option<Instant>,
    /// When it could not be read again, and what was read before was kept.
    failed_at: Option<Instant>,
}

/// What is presented to the API server.
pub(super) struct Login {
    auth: Option<AuthLayer>,
    life: Life,
    /// The configuration without its exec plugin, but with what that gave.
    resolved: Config,
    pub(super) transport: Arc<Transport>,
}

/// How long a credential is good; without times it does not expire.
#[derive(Debug, Clone, Copy, Default)]
struct Life {
    /// From when on another one is asked for.
    renews: Option<Instant>,
    /// From when on it is not good any more.
    expires: Option<Instant>,
}

/// What opens connections with one certificate.
pub(super) struct Transport {
    /// Is another one for each certificate.
    pub(super) number: u64,
    certificate: u64,
    pub(super) dialer: Dialer,
    /// Speaks HTTP/1.1, unless the server has come to choose HTTP/2.
    pub(super) http1: Http1,
    /// Speaks HTTP/1.1 only, for exec, attach and port-forward.
    pub(super) upgrades: Http1,
}

/// A client for HTTP/1.1, whose idle connections can be forgotten.
pub(super) struct Http1 {
    dialer: Dialer,
    /// Its pool cannot be emptied, so it is replaced.
    hyper: Mutex<Hyper>,
}

/// Why credentials are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// They may have changed or expired.
    Age,
    /// The API server refused them.
    Refusal,
}

impl Credentials {
    /// Reads the credentials of a configuration.
    pub(super) async fn read(config: Config, offers_http2: bool) -> Result<Self, CredentialError> {
        let credentials = Self {
            source: Arc::new(Source {
                config,
                offers_http2,
                transports: AtomicU64::new(0),
                state: Mutex::default(),
            }),
            reading: Single::new(),
        };
        credentials.current().await?;
        Ok(credentials)
    }

    /// Returns what is presented now. Files are read, and exec plugins run, when it is time for that.
    pub(super) async fn current(&self) -> Result<Arc<Login>, CredentialError> {
        if let Some(login) = self.source.fresh() {
            return Ok(login);
        }
        self.reading.join((), || self.reading_for(Why::Age)).await
    }

    /// Returns what was read last, whether or not it is still good.
    pub(super) fn known(&self) -> Option<Arc<Login>> {
        self.source.state.lock().current.clone()
    }

    /// Returns what can be presented soon: an exec plugin, which may take its time, is not run for it.
    pub(super) async fn at_hand(&self) -> Result<Arc<Login>, CredentialError> {
        match self.known().filter(|_| self.source.plugin().is_some()) {
            Some(login) => Ok(login),
            None => self.current().await,
        }
    }

    /// Returns what is to be presented after something was refused; `None` if there is nothing else.
    pub(super) async fn after_refusal(&self, refused: &Arc<Login>) -> Option<Arc<Login>> {
        if let Some(newer) = self.source.newer_than(refused) {
            return Some(newer);
        }
        // A reading that is under way is waited for, whoever began it. It may have ended since we looked.
        let reading = self.reading.join_or((), || {
            let newer = self.source.newer_than(refused);
            let starts = newer.is_none() && self.source.may_read_again();
            starts.then(|| self.reading_for(Why::Refusal)).ok_or(newer)
        });
        match reading {
            Ok(reading) => reading.await.ok(),
            Err(newer) => newer,
        }
    }

    /// Returns whether what is presented can change.
    pub(super) fn can_change(&self) -> bool {
        self.source.plugin().is_some() || self.source.has_files()
    }

    /// Reads everything on a thread of its own. It runs to its end, and its result is kept, even if all requests that
    /// wait for it are cancelled.
    fn reading_for(&self, why: Why) -> BoxFuture<'static, Result<Arc<Login>, CredentialError>> {
        let source = Arc::clone(&self.source);
        let read = task::spawn_blocking(move || source.read(why));
        let ended = |read: Result<_, task::JoinError>| {
            read.unwrap_or_else(|error| Err(CredentialError::Unusable(error.to_string())))
        };
        read.map(ended).boxed()
    }
}

impl Source {
    /// Returns what was read last, unless it is to be read again.
    fn fresh(&self) -> Option<Arc<Login>> {
        let state = self.state.lock();
        let login = state.current.as_ref()?;
        let has_failed = state.failed_at.is_some_and(|at| at.elapsed() < RUN_EVERY);
        let is_due = if has_failed {
            login.life.has_expired()
        } else {
            login.life.is_due()
        };
        let is_recent = || state.read_at.is_some_and(|at| at.elapsed() < READ_EVERY);
        let is_fresh = !is_due && (!self.has_files() || is_recent());
        is_fresh.then(|| Arc::clone(login))
    }

    fn newer_than(&self, refused: &Arc<Login>) -> Option<Arc<Login>> {
        let state = self.state.lock();
        let current = state.current.as_ref()?;
        (!Arc::ptr_eq(current, refused)).then(|| Arc::clone(current))
    }

    /// Returns whether something is read again because it was refused. Users that may not do anything must not have
    /// their plugin run by each request.
    fn may_read_again(&self) -> bool {
        let mut state = self.state.lock();
        let is_recent = state.refused_at.is_some_and(|at| at.elapsed() < RUN_EVERY);
        if self.plugin().is_some() && is_recent {
            return false;
        }
        state.refused_at = Some(Instant::now());
        self.plugin().is_some() || self.has_files()
    }

    /// Returns the exec plugin, if nothing else comes before it.
    fn plugin(&self) -> Option<&kube::config::ExecConfig> {
        let user = &self.config.auth_info;
        let has_password = user.username.is_some() && user.password.is_some();
        let has_other = user.auth_provider.is_some() || has_password;
        let has_token = user.token.is_some() || user.token_file.is_some();
        user.exec.as_ref().filter(|_| !has_other && !has_token)
    }

    /// Returns whether there are files that may change.
    fn has_files(&self) -> bool {
        let user = &self.config.auth_info;
        let has_token_file = user.token_file.is_some() && user.token.is_none();
        has_token_file || files(&self.config).next().is_some()
    }

    /// Reads everything. It may take long, and blocks its thread.
    fn read(&self, why: Why) -> Result<Arc<Login>, CredentialError> {
        let before = self.state.lock().current.clone();
        let read = self.read_after(before.as_ref(), why);
        let mut state = self.state.lock();
        state.failed_at = None;
        let login = match (read, before) {
            (Ok(login), _) => Arc::new(login),
            // A file that is missing or half-written for a moment, as while it is replaced, or a plugin that fails once,
            // does not take away what is still good.
            (Err(error), Some(before)) if self.keeps(&before, why) => {
                tracing::warn!(%error, "the credentials cannot be read again; those read before are used");
                state.failed_at = Some(Instant::now());
                before
            }
            (Err(error), _) => return Err(error),
        };
        state.read_at = Some(Instant::now());
        state.current = Some(Arc::clone(&login));
        Ok(login)
    }

    /// Returns whether credentials are used further after a failure to read them again. Refused ones of a plugin are
    /// not: the failure of the plugin is what the caller has to know.
    fn keeps(&self, before: &Login, why: Why) -> bool {
        self.plugin().is_none() || why == Why::Age && !before.life.has_expired()
    }

    fn read_after(&self, before: Option<&Arc<Login>>, why: Why) -> Result<Login, CredentialError> {
        let (resolved, life) = self.resolve(before, why)?;
        let certificate = fingerprint(&resolved);
        let same = before.filter(|login| login.transport.certificate == certificate);
        let transport = match same {
            Some(login) => Arc::clone(&login.transport),
            None => {
                // Counted, since two readings of the same state can go on at the same time.
                let number = self.transports.fetch_add(1, Ordering::Relaxed);
                Arc::new(self.transport(&resolved, number, certificate)?)
            }
        };
        Ok(Login {
            auth: resolved.auth_layer()?,
            life,
            resolved,
            transport,
        })
    }

    /// Replaces the exec plugin in the configuration by what it gives, which is asked for if it is not known.
    fn resolve(
        &self,
        before: Option<&Arc<Login>>,
        why: Why,
    ) -> Result<(Config, Life), CredentialError> {
        let Some(plugin) = self.plugin() else {
            return Ok((self.config.clone(), Life::default()));
        };
        let is_good = |login: &&Arc<Login>| why == Why::Age && !login.life.is_due();
        if let Some(login) = before.filter(is_good) {
            return Ok((login.resolved.clone(), login.life));
        }
        let credential = exec::run(plugin)?;
        let mut resolved = self.config.clone();
        let user = &mut resolved.auth_info;
        user.exec = None;
        user.token = credential.token.map(Into::into);
        if let Some((certificate, key)) = credential.certificate {
            use base64::Engine;
            let encode = |pem: String| base64::engine::general_purpose::STANDARD.encode(pem);
            user.client_certificate_data = Some(encode(certificate));
            user.client_key_data = Some(encode(key).into());
        }
        Ok((resolved, Life::of(credential.lasts)))
    }

    fn transport(
        &self,
        config: &Config,
        number: u64,
        certificate: u64,
    ) -> Result<Transport, kube::Error> {
        let offer = if self.offers_http2 {
            Offer::Http2OrHttp1
        } else {
            Offer::Http1
        };
        let [dialer, upgrades] = dial::dialers(config, [offer, Offer::Http1])?;
        Ok(Transport {
            number,
            certificate,
            http1: Http1::new(dialer.clone()),
            upgrades: Http1::new(upgrades),
            dialer,
        })
    }
}

impl Life {
    /// Returns how long what lasts so long from now on is good.
    fn of(lasts: Option<Duration>) -> Self {
        let after = |delay: Duration| Instant::now().checked_add(delay);
        Self {
            renews: lasts.and_then(|lasts| after(lasts - MARGIN.min(lasts / 4))),
            expires: lasts.and_then(after),
        }
    }

    fn is_due(&self) -> bool {
        self.renews.is_some_and(|at| at <= Instant::now())
    }

    fn has_expired(&self) -> bool {
        self.expires.is_some_and(|at| at <= Instant::now())
    }
}

impl Login {
    /// Returns whether there are certificates that may have been replaced.
    pub(super) fn has_certificates(&self) -> bool {
        let is_given = self.resolved.auth_info.client_certificate_data.is_some();
        is_given || files(&self.resolved).next().is_some()
    }

    /// Adds what is presented with each request.
    pub(super) async fn sign(
        &self,
        request: Request<Body>,
    ) -> Result<Request<Body>, CredentialError> {
        let Some(layer) = &self.auth else {
            return Ok(request);
        };
        let signed = signed(layer, request).await;
        signed.map_err(|error| CredentialError::Unusable(describe(&*error)))
    }
}

/// Sends a request through kube's layer, which is made to stand before a service, and returns what came out.
fn signed(
    layer: &AuthLayer,
    request: Request<Body>,
) -> BoxFuture<'static, Result<Request<Body>, BoxError>> {
    let mirror = tower::service_fn(|request: Request<Body>| {
        future::ready(Ok::<_, BoxError>(Response::new(request)))
    });
    let signed = layer.layer(mirror).oneshot(request);
    signed.map(|signed| signed.map(Response::into_body)).boxed()
}

/// Returns the files of certificates: of the user's, and of the authorities the server's is checked with.
fn files(config: &Config) -> impl Iterator<Item = &Path> {
    let user = &config.auth_info;
    let is_given = user.client_certificate_data.is_some();
    let own = [&user.client_certificate, &user.client_key];
    let own = own.into_iter().flatten().filter(move |_| !is_given);
    own.map(Path::new).chain(config.root_cert_file.as_deref())
}

/// Returns a number that changes with the certificates.
fn fingerprint(config: &Config) -> u64 {
    let mut hasher = DefaultHasher::new();
    config.auth_info.client_certificate_data.hash(&mut hasher);
    for file in files(config) {
        std::fs::read(file).ok().hash(&mut hasher);
    }
    hasher.finish()
}

impl Transport {
    /// Closes connections over HTTP/1.1 on which nothing is under way, and the others when their answer was read.
    pub(super) fn forget_idle(&self) {
        self.http1.forget_idle();
        self.upgrades.forget_idle();
    }
}

impl Http1 {
    fn new(dialer: Dialer) -> Self {
        let hyper = Mutex::new(hyper(dialer.clone()));
        Self { dialer, hyper }
    }

    pub(super) fn get(&self) -> Hyper {
        self.hyper.lock().clone()
    }

    /// Returns what opens its connections.
    pub(super) fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    fn forget_idle(&self) {
        let next = hyper(self.dialer.clone());
        // The old one closes its connections when it is dropped, after the lock.
        let old = std::mem::replace(&mut *self.hyper.lock(), next);
        drop(old);
    }
}

/// Makes a client for HTTP/1.1.
fn hyper(dialer: Dialer) -> Hyper {
    Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_AFTER)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .build(dialer)
}
