//! The address at which API servers call the webhooks.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{ServiceReference, WebhookClientConfig};
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use lariat_core::ObjectKey;
use rustls::pki_types::ServerName;

/// The address at which API servers call webhooks: a Service or a URL.
///
/// ```no_run
/// use lariat::webhook::Endpoint;
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// // Applies the Service demo/webhooks for Pods with the label app=webhooks.
/// let inside = Endpoint::service(&"demo/webhooks".parse()?).selects("app", "webhooks");
/// let outside = Endpoint::url("https://webhooks.demo.dev:9443");
/// # let _ = (inside, outside);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use = "webhooks are called there once they have it"]
pub struct Endpoint {
    place: Place,
    selector: BTreeMap<String, String>,
    target_port: Option<u16>,
}

#[derive(Debug, Clone)]
enum Place {
    Service(ObjectKey, u16),
    Url(String),
    /// The address on which the server listens.
    Local,
}

impl Endpoint {
    /// Calls webhooks through a Service, at port 443.
    pub fn service(service: &ObjectKey) -> Self {
        Self::new(Place::Service(service.clone(), 443))
    }

    /// Calls webhooks at a URL, to which their paths are added.
    ///
    /// Use it for programs outside the cluster. API servers call `https` only.
    pub fn url(url: &str) -> Self {
        Self::new(Place::Url(url.trim_end_matches('/').to_owned()))
    }

    /// Calls webhooks at the address on which the server listens.
    ///
    /// Use it for API servers on the same machine, as in tests. Generated certificates are for `127.0.0.1`, `::1` and
    /// `localhost`.
    pub fn local() -> Self {
        Self::new(Place::Local)
    }

    fn new(place: Place) -> Self {
        Self {
            place,
            selector: BTreeMap::new(),
            target_port: None,
        }
    }

    /// Sets the port of the Service (default 443).
    pub fn port(mut self, port: u16) -> Self {
        if let Place::Service(_, own) = &mut self.place {
            *own = port;
        }
        self
    }

    /// Applies the Service too, for Pods with a label.
    ///
    /// It can be called several times. Without a label the Service must exist.
    pub fn selects(mut self, label: &str, value: &str) -> Self {
        self.selector.insert(label.to_owned(), value.to_owned());
        self
    }

    /// Sets the Pods' port in an applied Service.
    ///
    /// The default is the port that the server listens on.
    pub fn target_port(self, port: u16) -> Self {
        let target_port = Some(port);
        Self {
            target_port,
            ..self
        }
    }

    /// Replaces a local address by the URL of a server that listens.
    pub(crate) fn to(self, listening: SocketAddr) -> Self {
        let Place::Local = &self.place else {
            return self;
        };
        let mut address = listening;
        // `0.0.0.0` is an address to listen on, not one to call.
        if address.ip().is_unspecified() {
            address.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        Self::url(&format!("https://{address}"))
    }

    /// Returns the client configuration for the path of a webhook.
    pub(crate) fn client_config(&self, path: &str, authority: Option<&str>) -> WebhookClientConfig {
        let ca_bundle = authority.map(|pem| ByteString(pem.as_bytes().to_vec()));
        match &self.place {
            Place::Service(key, port) => WebhookClientConfig {
                ca_bundle,
                service: Some(ServiceReference {
                    name: key.name().to_owned(),
                    namespace: namespace(key).to_owned(),
                    path: Some(path.to_owned()),
                    port: Some(i32::from(*port)),
                }),
                url: None,
            },
            Place::Url(url) => WebhookClientConfig {
                ca_bundle,
                service: None,
                url: Some(format!("{url}{path}")),
            },
            // There is no server yet, and so no port.
            Place::Local => WebhookClientConfig {
                ca_bundle,
                service: None,
                url: Some(format!("https://localhost{path}")),
            },
        }
    }

    /// Returns the URL, if API servers would not call it.
    pub(crate) fn unusable_url(&self) -> Option<&str> {
        match &self.place {
            Place::Url(url) if self.called().is_none() => Some(url),
            _ => None,
        }
    }

    /// Returns the name that API servers call, once the address of a local server is known.
    pub(crate) fn called(&self) -> Option<ServerName<'static>> {
        let name = match &self.place {
            Place::Service(key, _) => format!("{}.{}.svc", key.name(), namespace(key)),
            Place::Url(url) => host(url)?.to_owned(),
            Place::Local => return None,
        };
        ServerName::try_from(name).ok()
    }

    /// Returns the names that certificates must have.
    pub(crate) fn names(&self) -> Vec<String> {
        match &self.place {
            Place::Service(key, _) => {
                let (name, namespace) = (key.name(), namespace(key));
                vec![
                    format!("{name}.{namespace}.svc"),
                    format!("{name}.{namespace}.svc.cluster.local"),
                ]
            }
            Place::Url(url) => host(url).map(str::to_owned).into_iter().collect(),
            Place::Local => ["127.0.0.1", "::1", "localhost"]
                .map(str::to_owned)
                .to_vec(),
        }
    }

    /// Returns the Service to apply, if there is one.
    pub(crate) fn service_to_apply(&self, listening: u16) -> Option<Service> {
        let Place::Service(key, port) = &self.place else {
            return None;
        };
        if self.selector.is_empty() {
            return None;
        }
        let target = self.target_port.unwrap_or(listening);
        Some(Service {
            metadata: ObjectMeta {
                name: Some(key.name().to_owned()),
                namespace: Some(namespace(key).to_owned()),
                ..ObjectMeta::default()
            },
            spec: Some(ServiceSpec {
                selector: Some(self.selector.clone()),
                ports: Some(vec![ServicePort {
                    name: Some("https".to_owned()),
                    port: i32::from(*port),
                    protocol: Some("TCP".to_owned()),
                    target_port: Some(IntOrString::Int(i32::from(target))),
                    ..ServicePort::default()
                }]),
                ..ServiceSpec::default()
            }),
            ..Service::default()
        })
    }

    /// Returns the key of the Service that is applied, if there is one.
    pub(crate) fn applied_service(&self) -> Option<&ObjectKey> {
        match &self.place {
            Place::Service(key, _) if !self.selector.is_empty() => Some(key),
            _ => None,
        }
    }
}

fn namespace(key: &ObjectKey) -> &str {
    key.namespace().unwrap_or("default")
}

/// Returns the host of a URL, without the brackets of an IPv6 address.
fn host(url: &str) -> Option<&str> {
    let authority = url.strip_prefix("https://")?.split('/').next()?;
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0,
        None => authority.split(':').next()?,
    };
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_for_the_host_of_the_url() {
        let check = |url: &str, expected: &[&str]| assert_eq!(Endpoint::url(url).names(), expected);
        check("https://127.0.0.1:9443", &["127.0.0.1"]);
        check("https://webhooks.demo.dev/base/", &["webhooks.demo.dev"]);
        check("https://[fd00::7]:9443/a", &["fd00::7"]);
        check("http://127.0.0.1", &[]);
        assert!(Endpoint::url("https://").unusable_url().is_some());
    }

    #[test]
    fn a_local_server_is_reached_where_it_listens() {
        let check = |listening: &str, expected: &str| {
            let config = Endpoint::local()
                .to(listening.parse().unwrap())
                .client_config("/a", None);
            assert_eq!(config.url.as_deref(), Some(expected));
        };
        check("127.0.0.1:9443", "https://127.0.0.1:9443/a");
        check("0.0.0.0:9443", "https://127.0.0.1:9443/a");
        check("[::1]:9443", "https://[::1]:9443/a");
    }

    #[test]
    fn a_service_is_applied_only_for_selected_pods() {
        let key = ObjectKey::namespaced("demo", "hooks");
        let endpoint = Endpoint::service(&key);
        assert!(endpoint.service_to_apply(9443).is_none());
        let service = endpoint
            .selects("app", "widgets")
            .service_to_apply(9443)
            .unwrap();
        let port = &service.spec.unwrap().ports.unwrap()[0];
        assert_eq!(port.target_port, Some(IntOrString::Int(9443)));
    }
}
