//! TLS: the offered protocols, and the verification of servers.

use http::Uri;
use hyper::rt::{Read, Write};
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use kube::Config;
use tower::{BoxError, Service};

use crate::socket::{Connector, Offer, boxed};

/// The TLS configuration, read once for all connections.
pub(crate) struct Tls {
    #[cfg(feature = "rustls-tls")]
    config: Option<rustls::ClientConfig>,
}

impl Tls {
    #[cfg(feature = "rustls-tls")]
    pub(crate) fn new(config: &Config) -> Result<Self, kube::Error> {
        use kube::client::ConfigExt;
        let is_needed = is_https(&config.cluster_url) || config.proxy_url.iter().any(is_https);
        if !is_needed {
            return Ok(Self { config: None });
        }
        let mut config = config.clone();
        config.root_cert = config.root_cert.map(usable).transpose()?;
        Ok(Self {
            config: Some(config.rustls_client_config()?),
        })
    }

    #[cfg(feature = "rustls-tls")]
    pub(crate) fn wrap<C>(
        &self,
        config: &Config,
        connector: C,
        offer: Offer,
    ) -> Result<Connector, kube::Error>
    where
        C: Service<Uri> + Clone + Send + Sync + 'static,
        C::Response: Read + Write + Connection + Send + Unpin + 'static,
        C::Future: Send + 'static,
        C::Error: Into<BoxError>,
    {
        use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
        let Some(tls) = self
            .config
            .clone()
            .filter(|_| is_https(&config.cluster_url))
        else {
            return Ok(boxed(connector));
        };
        let mut builder = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only();
        if let Some(name) = &config.tls_server_name {
            let name = name.clone().try_into().map_err(|_| {
                let text = "tls-server-name is neither a host name nor an address";
                kube::Error::Service(text.into())
            })?;
            builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
        }
        Ok(match offer {
            Offer::Http1 => boxed(builder.enable_http1().wrap_connector(connector)),
            Offer::Http2OrHttp1 => boxed(builder.enable_all_versions().wrap_connector(connector)),
        })
    }

    #[cfg(feature = "rustls-tls")]
    pub(crate) fn wrap_proxy(
        &self,
        tcp: HttpConnector,
    ) -> Result<hyper_rustls::HttpsConnector<HttpConnector>, kube::Error> {
        let tls = self.config.clone().ok_or(kube::Error::TlsRequired)?;
        let builder = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls);
        Ok(builder.https_only().enable_http1().wrap_connector(tcp))
    }

    #[cfg(not(feature = "rustls-tls"))]
    pub(crate) fn new(config: &Config) -> Result<Self, kube::Error> {
        if is_https(&config.cluster_url) {
            return Err(kube::Error::TlsRequired);
        }
        Ok(Self {})
    }

    #[cfg(not(feature = "rustls-tls"))]
    pub(crate) fn wrap<C>(
        &self,
        _: &Config,
        connector: C,
        _: Offer,
    ) -> Result<Connector, kube::Error>
    where
        C: Service<Uri> + Clone + Send + Sync + 'static,
        C::Response: Read + Write + Connection + Send + Unpin + 'static,
        C::Future: Send + 'static,
        C::Error: Into<BoxError>,
    {
        Ok(boxed(connector))
    }

    #[cfg(not(feature = "rustls-tls"))]
    pub(crate) fn wrap_proxy(&self, _: HttpConnector) -> Result<HttpConnector, kube::Error> {
        Err(kube::Error::TlsRequired)
    }
}

/// Returns the authorities that can be used, as long as there is one.
///
/// Go's reader skips the others, so they are in bundles that work elsewhere.
#[cfg(feature = "rustls-tls")]
fn usable(authorities: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, kube::Error> {
    use rustls::pki_types::CertificateDer;
    let is_usable = |der: &Vec<u8>| {
        let mut store = rustls::RootCertStore::empty();
        store.add(CertificateDer::from(der.as_slice())).is_ok()
    };
    let usable: Vec<_> = authorities.into_iter().filter(is_usable).collect();
    if usable.is_empty() {
        let text = "none of the certificate authorities of the server can be used";
        return Err(kube::Error::Service(text.into()));
    }
    Ok(usable)
}

fn is_https(url: &Uri) -> bool {
    url.scheme() == Some(&http::uri::Scheme::HTTPS)
}
