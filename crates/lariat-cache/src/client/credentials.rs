//! Credentials: tokens and certificates, renewed before they expire or change.

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

/// How often files of tokens and certificates are read, as in client-go.
const READ_EVERY: Duration = Duration::from_secs(60);

/// How long before its expiry the credential of an exec plugin is renewed.
///
/// A credential that is valid for less than four times as long is renewed after three quarters of its lifetime.
const MARGIN: Duration = Duration::from_secs(60);

/// The shortest interval between runs of an exec plugin.
///
/// It applies after the API server refused its credential, and after a failed run while the previous credential is
/// still valid.
const RUN_EVERY: Duration = Duration::from_secs(5);

type Hyper = HyperClient<Dialer, Body>;

/// The error of credentials that could not be obtained; the request was not sent.
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
    /// Whether HTTP/2 is offered to the server.
    offers_http2: bool,
    /// How many transports were created.
    transports: AtomicU64,
    state: Mutex<Logins>,
}

#[derive(Default)]
struct Logins {
    current: Option<Arc<Login>>,
    /// When the credentials were last read; files are read again after a while.
    read_at: Option<Instant>,
    /// When they were last read because the API server refused them.
    refused_at: Option<Instant>,
    /// When a read last failed and the previous credentials were kept.
    failed_at: Option<Instant>,
}

/// The credentials that are presented to the API server.
pub(super) struct Login {
    auth: Option<AuthLayer>,
    life: Life,
    /// The configuration, with the exec plugin replaced by its credential.
    resolved: Config,
    pub(super) transport: Arc<Transport>,
}

/// The lifetime of a credential; without times it does not expire.
#[derive(Debug, Clone, Copy, Default)]
struct Life {
    /// When it is renewed.
    renews: Option<Instant>,
    /// When it expires.
    expires: Option<Instant>,
}

/// Opens connections with one certificate.
pub(super) struct Transport {
    /// A number that differs for each certificate.
    pub(super) number: u64,
    certificate: u64,
    pub(super) dialer: Dialer,
    /// Uses HTTP/1.1, unless the server chooses HTTP/2.
    pub(super) http1: Http1,
    /// Uses HTTP/1.1 only, for exec, attach and port-forward.
    pub(super) upgrades: Http1,
}

/// An HTTP/1.1 client whose idle connections can be dropped.
pub(super) struct Http1 {
    dialer: Dialer,
    /// Replaced to drop its connections, because hyper's pool cannot be emptied.
    hyper: Mutex<Hyper>,
}

/// The reason for reading credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadReason {
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

    /// Returns the current credentials; reads files or runs plugins if due.
    pub(super) async fn current(&self) -> Result<Arc<Login>, CredentialError> {
        if let Some(login) = self.source.fresh() {
            return Ok(login);
        }
        self.reading
            .join((), || self.reading_for(ReadReason::Age))
            .await
    }

    /// Returns the credentials that were read last, valid or not.
    pub(super) fn known(&self) -> Option<Arc<Login>> {
        self.source.state.lock().current.clone()
    }

    /// Returns credentials without running an exec plugin, which may take long.
    pub(super) async fn at_hand(&self) -> Result<Arc<Login>, CredentialError> {
        match self.known().filter(|_| self.source.plugin().is_some()) {
            Some(login) => Ok(login),
            None => self.current().await,
        }
    }

    /// Returns other credentials than the refused ones.
    ///
    /// `None` if there are none.
    pub(super) async fn after_refusal(&self, refused: &Arc<Login>) -> Option<Arc<Login>> {
        if let Some(newer) = self.source.newer_than(refused) {
            return Some(newer);
        }
        // Joins a read in progress. It may have ended since the check above, so the check is repeated.
        let reading = self.reading.join_or((), || {
            let newer = self.source.newer_than(refused);
            let starts = newer.is_none() && self.source.may_read_again();
            starts
                .then(|| self.reading_for(ReadReason::Refusal))
                .ok_or(newer)
        });
        match reading {
            Ok(reading) => reading.await.ok(),
            Err(newer) => newer,
        }
    }

    /// Returns whether the credentials can change.
    pub(super) fn can_change(&self) -> bool {
        self.source.plugin().is_some() || self.source.has_files()
    }

    /// Reads everything on a blocking thread.
    ///
    /// The read runs to its end and its result is kept, even if all requests that wait for it are cancelled.
    fn reading_for(
        &self,
        reason: ReadReason,
    ) -> BoxFuture<'static, Result<Arc<Login>, CredentialError>> {
        let source = Arc::clone(&self.source);
        let read = task::spawn_blocking(move || source.read(reason));
        let ended = |read: Result<_, task::JoinError>| {
            read.unwrap_or_else(|error| Err(CredentialError::Unusable(error.to_string())))
        };
        read.map(ended).boxed()
    }
}

impl Source {
    /// Returns the credentials that were read last, unless they must be read again.
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

    /// Returns whether credentials may be read again because they were refused.
    ///
    /// This is limited for plugins: a user without permissions must not have the plugin run for each request.
    fn may_read_again(&self) -> bool {
        let mut state = self.state.lock();
        let is_recent = state.refused_at.is_some_and(|at| at.elapsed() < RUN_EVERY);
        if self.plugin().is_some() && is_recent {
            return false;
        }
        state.refused_at = Some(Instant::now());
        self.plugin().is_some() || self.has_files()
    }

    /// Returns the exec plugin, unless other credentials take precedence.
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

    /// Reads everything, which may take long and blocks the thread.
    fn read(&self, reason: ReadReason) -> Result<Arc<Login>, CredentialError> {
        let before = self.state.lock().current.clone();
        let read = self.read_after(before.as_ref(), reason);
        let mut state = self.state.lock();
        state.failed_at = None;
        let login = match (read, before) {
            (Ok(login), _) => Arc::new(login),
            // Valid credentials are kept if a file is missing or half-written for a moment, as while it is replaced, or
            // if a plugin fails once.
            (Err(error), Some(before)) if self.keeps(&before, reason) => {
                tracing::warn!(%error, "the credentials cannot be renewed; the previous ones are used");
                state.failed_at = Some(Instant::now());
                before
            }
            (Err(error), _) => return Err(error),
        };
        state.read_at = Some(Instant::now());
        state.current = Some(Arc::clone(&login));
        Ok(login)
    }

    /// Returns whether credentials are kept after a failed renewal.
    ///
    /// Refused credentials of a plugin are not: the caller needs the error of the plugin.
    fn keeps(&self, before: &Login, reason: ReadReason) -> bool {
        self.plugin().is_none() || reason == ReadReason::Age && !before.life.has_expired()
    }

    fn read_after(
        &self,
        before: Option<&Arc<Login>>,
        reason: ReadReason,
    ) -> Result<Login, CredentialError> {
        let (resolved, life) = self.resolve(before, reason)?;
        let certificate = fingerprint(&resolved);
        let same = before.filter(|login| login.transport.certificate == certificate);
        let transport = match same {
            Some(login) => Arc::clone(&login.transport),
            None => {
                // A counter, because two reads of the same state may overlap.
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

    /// Replaces the exec plugin in the configuration by its credential.
    ///
    /// The plugin is run if necessary.
    fn resolve(
        &self,
        before: Option<&Arc<Login>>,
        reason: ReadReason,
    ) -> Result<(Config, Life), CredentialError> {
        let Some(plugin) = self.plugin() else {
            return Ok((self.config.clone(), Life::default()));
        };
        let is_good = |login: &&Arc<Login>| reason == ReadReason::Age && !login.life.is_due();
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
    /// Returns the lifetime of a credential that is valid from now for so long.
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

    /// Adds the credentials to a request.
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

/// Runs a request through kube's auth layer and returns it.
///
/// The layer can only wrap a service, so it wraps one that returns the request.
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

/// Returns the certificate files: the user's, and the CA's of the server.
fn files(config: &Config) -> impl Iterator<Item = &Path> {
    let user = &config.auth_info;
    let is_given = user.client_certificate_data.is_some();
    let own = [&user.client_certificate, &user.client_key]
        .into_iter()
        .flatten()
        .filter(move |_| !is_given);
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
    /// Closes idle HTTP/1.1 connections now, and the others once their answer was read.
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

    /// Returns the dialer of the connections.
    pub(super) fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    fn forget_idle(&self) {
        let next = hyper(self.dialer.clone());
        // The old client closes its connections when it is dropped, after the lock is released.
        let old = std::mem::replace(&mut *self.hyper.lock(), next);
        drop(old);
    }
}

/// Creates an HTTP/1.1 client.
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
