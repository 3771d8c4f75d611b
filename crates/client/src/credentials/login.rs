//! The credentials that are presented to the API server.

use std::future;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderValue, Request, Response, header};
use kube::client::Body;
use kube::client::middleware::AuthLayer;
use tower::{BoxError, Layer, ServiceExt};

use super::error::{CredentialError, Refusal};
use super::exec::Credential;
use super::life::Life;
use super::transport::Transport;

/// The credentials that are presented to the API server.
pub(crate) struct Login {
    pub(super) signer: Signer,
    /// The credential of an exec plugin, and how long it is valid.
    pub(super) plugin: Option<Arc<Credential>>,
    pub(super) life: Life,
    /// Whether another certificate or authority may be read after TLS has failed.
    pub(super) has_certificates: bool,
    pub(super) has_client_certificate: bool,
    pub(crate) transport: Arc<Transport>,
}

/// Adds a header to requests.
pub(super) enum Signer {
    /// There is no token and no password.
    Nothing,
    Header(HeaderValue),
    /// An auth provider of kube.
    Provider(AuthLayer),
}

impl Login {
    /// Returns whether there are certificates that may have been replaced.
    pub(crate) fn has_certificates(&self) -> bool {
        self.has_certificates
    }

    /// Returns whether the server is shown a certificate, which it may refuse.
    pub(crate) fn has_client_certificate(&self) -> bool {
        self.has_client_certificate
    }

    /// Returns whether the plugin's credential is kept after a refusal.
    ///
    /// A credential without a certificate has no part in TLS.
    pub(super) fn keeps_plugin(&self, refusal: Refusal) -> bool {
        let plugin = self.plugin.as_ref();
        refusal == Refusal::Tls && plugin.is_some_and(|given| given.certificate.is_none())
    }

    /// Adds the credentials to a request.
    pub(crate) async fn sign(
        &self,
        mut request: Request<Body>,
    ) -> Result<Request<Body>, CredentialError> {
        match &self.signer {
            Signer::Nothing => Ok(request),
            Signer::Header(value) => {
                request
                    .headers_mut()
                    .insert(header::AUTHORIZATION, value.clone());
                Ok(request)
            }
            Signer::Provider(layer) => {
                let signed = signed(layer, request).await;
                signed.map_err(|error| CredentialError::unusable(&*error))
            }
        }
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
