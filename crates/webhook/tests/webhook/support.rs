//! A program with webhooks, and a client that calls them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use kube::CustomResource;
use lariat_cluster::Cluster;
use lariat_cluster::testing::{TestCluster, eventually};
use lariat_controller::SharedControllerFactory;
use lariat_webhook::{Certificates, WebhookHealth, WebhookServer, Webhooks};
use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "demo.dev", version = "v1", kind = "Widget", namespaced)]
pub(crate) struct WidgetSpec {
    #[serde(default)]
    pub(crate) size: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) color: Option<String>,
}

/// A certificate with its key and its authority, in PEM.
pub(crate) struct Issued {
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) authority: String,
}

/// Issues a certificate for this machine and the Service `demo/hooks`, by a new authority.
pub(crate) fn issue() -> Issued {
    issue_for(["127.0.0.1", "hooks.demo.svc"])
}

/// Issues a certificate for some names, by a new authority.
pub(crate) fn issue_for(names: impl IntoIterator<Item = &'static str>) -> Issued {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let server =
        CertificateParams::new(names.into_iter().map(str::to_owned).collect::<Vec<_>>()).unwrap();
    let key = KeyPair::generate().unwrap();
    Issued {
        certificate: server.signed_by(&key, &authority).unwrap().pem(),
        key: key.serialize_pem(),
        authority: authority.pem(),
    }
}

/// A directory that is deleted at the end of a test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("lariat-webhook-{}", fastrand_name()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// Mounts a certificate as a kubelet does: in a new folder, to which a link is swapped.
    pub(crate) fn mount(&self, issued: &Issued) {
        let data = self.0.join(fastrand_name());
        fs::create_dir(&data).unwrap();
        fs::write(data.join("tls.crt"), &issued.certificate).unwrap();
        fs::write(data.join("tls.key"), &issued.key).unwrap();
        fs::write(data.join("ca.crt"), &issued.authority).unwrap();
        let link = self.0.join("..tmp");
        std::os::unix::fs::symlink(&data, &link).unwrap();
        fs::rename(&link, self.0.join("..data")).unwrap();
        for name in ["tls.crt", "tls.key", "ca.crt"] {
            let path = self.0.join(name);
            if !path.exists() {
                std::os::unix::fs::symlink(Path::new("..data").join(name), &path).unwrap();
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn fastrand_name() -> String {
    let key = KeyPair::generate().unwrap();
    let raw = key.public_key_raw();
    raw[1..13]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// A cluster and a factory on it.
pub(crate) struct Program {
    pub(crate) cluster: TestCluster,
    pub(crate) factory: SharedControllerFactory,
}

impl Program {
    pub(crate) async fn new() -> Self {
        let cluster = Cluster::for_test().await;
        let factory = SharedControllerFactory::builder(cluster.client()).build();
        Self { cluster, factory }
    }

    pub(crate) fn webhooks(&self) -> Webhooks {
        Webhooks::new("widgets.demo.dev", &self.factory)
    }
}

/// Serves webhooks with a certificate from files.
pub(crate) async fn serve(webhooks: Webhooks) -> (WebhookServer, Caller) {
    let folder = Folder::new();
    folder.mount(&issue());
    // The folder is deleted before the files would be read again.
    let certificates = Certificates::directory(folder.path()).period(Duration::from_secs(3600));
    let server = webhooks.serve("127.0.0.1:0", certificates).await.unwrap();
    let caller = Caller::of(&server);
    (server, caller)
}

/// Calls webhooks, as an API server that trusts some authorities.
#[derive(Clone)]
pub(crate) struct Caller {
    host: String,
    port: u16,
    config: Arc<ClientConfig>,
}

/// An answer: the status and the body.
pub(crate) type Answered = (u16, String);

impl Caller {
    /// Returns a caller that trusts the authorities in the server's configurations.
    pub(crate) fn of(server: &WebhookServer) -> Self {
        Self::trusting(server, &server.authority().unwrap())
    }

    pub(crate) fn trusting(server: &WebhookServer, authority: &str) -> Self {
        Self::at(server.address().port(), authority)
    }

    pub(crate) fn at(port: u16, authority: &str) -> Self {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
            roots.add(certificate.unwrap()).unwrap();
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        // A resumed session sends no certificate.
        config.resumption = Resumption::disabled();
        Self {
            host: "127.0.0.1".to_owned(),
            port,
            config: Arc::new(config),
        }
    }

    /// Calls a name, which the certificate must be for, at the same port of this machine.
    pub(crate) fn calling(mut self, host: &str) -> Self {
        self.host = host.to_owned();
        self
    }

    /// Opens a connection.
    pub(crate) async fn connect(&self) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        let name = ServerName::try_from(self.host.clone()).unwrap();
        let connector = TlsConnector::from(Arc::clone(&self.config));
        connector.connect(name, stream).await
    }

    pub(crate) async fn send(&self, request: hyper::Request<Full<Bytes>>) -> Outcome<Answered> {
        let stream = self.connect().await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(connection);
        let response = sender.send_request(request).await?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Answered {
        self.try_post(path, body).await.unwrap()
    }

    pub(crate) async fn try_post(&self, path: &str, body: impl Into<Bytes>) -> Outcome<Answered> {
        let request = hyper::Request::post(path)
            .header("host", "webhooks")
            .header("content-type", "application/json")
            .body(Full::new(body.into()))?;
        self.send(request).await
    }

    /// Calls a webhook, and returns its response.
    pub(crate) async fn review(&self, path: &str, review: &Value) -> Value {
        let (status, body) = self.post(path, review.to_string()).await;
        assert_eq!(status, 200, "{body}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["apiVersion"], review["apiVersion"]);
        assert_eq!(answer["kind"], review["kind"]);
        assert_eq!(answer["response"]["uid"], review["request"]["uid"]);
        answer["response"].clone()
    }
}

/// Returns the answer to a GET.
pub(crate) async fn get(caller: &Caller, path: &str) -> Answered {
    let request = hyper::Request::get(path).header("host", "a");
    let request = request.body(Full::default()).unwrap();
    caller.send(request).await.unwrap()
}

/// Waits until an alert is raised, and returns its reason.
pub(crate) async fn raised(health: &WebhookHealth, name: &str) -> String {
    until("no alert is raised", async || {
        let alerts = health.alerts().into_iter();
        let mut named = alerts.filter(|alert| alert.name == name);
        named.next().map(|alert| alert.message)
    })
    .await
}

/// Waits until no alert is raised.
pub(crate) async fn calm(health: &WebhookHealth) {
    until("an alert is raised", async || {
        health.alerts().is_empty().then_some(())
    })
    .await;
}

/// A result with errors of any type.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Waits until something holds; the text says what does not.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let found = eventually(Duration::from_secs(30), async || look().await.ok_or(what));
    found.await.unwrap()
}

pub(crate) fn widget(spec: &Value) -> Value {
    json!({
        "apiVersion": "demo.dev/v1", "kind": "Widget",
        "metadata": {"name": "a", "namespace": "demo"}, "spec": spec,
    })
}

/// Returns a review of a widget; null for a missing state.
pub(crate) fn review(operation: &str, object: &Value, old: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "7f0b2891-916f-4ed6-b7cd-27bff1815a8c",
            "kind": {"group": "demo.dev", "version": "v1", "kind": "Widget"},
            "resource": {"group": "demo.dev", "version": "v1", "resource": "widgets"},
            "requestKind": {"group": "demo.dev", "version": "v2", "kind": "Widget"},
            "name": "a", "namespace": "demo", "operation": operation,
            "userInfo": {"username": "eve", "groups": ["devs"]},
            "object": object, "oldObject": old, "dryRun": false,
            "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        },
    })
}

/// Returns the operations of a response's patch.
pub(crate) fn patch(response: &Value) -> Value {
    assert_eq!(response["patchType"], "JSONPatch", "{response}");
    let patch = STANDARD
        .decode(response["patch"].as_str().unwrap())
        .unwrap();
    serde_json::from_slice(&patch).unwrap()
}
