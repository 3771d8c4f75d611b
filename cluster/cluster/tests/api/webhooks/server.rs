//! A webhook: an HTTPS server on a loopback address, whose answers a test decides.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use rcgen::{
    CertificateParams, CertifiedIssuer, CertifiedKey, KeyPair, date_time_ymd,
    generate_simple_self_signed,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::bench::{Bench, with};

pub(super) const MUTATING: &str =
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
pub(super) const VALIDATING: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// What a webhook does with a connection or a review.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    /// Answers a response, to which the uid is added.
    Response(Value),
    /// Answers these bytes under a code.
    Bytes(u16, String),
    /// Never answers.
    Silent,
    /// Closes the connection.
    Close,
}

type Behaviour = dyn Fn(&str, &Value) -> Reply + Send + Sync;

/// A webhook that listens; it ends when it is dropped.
pub(super) struct Hook {
    pub(super) address: SocketAddr,
    /// The certificate to trust, in PEM.
    pub(super) authority: String,
    /// What it was asked: the path, and the review.
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    _tasks: JoinSet<()>,
}

impl Hook {
    /// Starts a webhook that answers every review in some way.
    pub(super) async fn start(
        behaviour: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let certificate = generate_simple_self_signed(names()).expect("a webhook of a test starts");
        Self::start_as(certificate, behaviour).await
    }

    /// Starts a webhook with a certificate.
    async fn start_as(
        certificate: CertifiedKey<KeyPair>,
        behaviour: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a webhook of a test starts");
        let address = listener.local_addr().expect("a webhook of a test starts");
        let CertifiedKey { cert, signing_key } = certificate;
        let key = PrivateKeyDer::try_from(signing_key.serialize_der())
            .expect("a webhook of a test starts");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("a webhook of a test starts")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("a webhook of a test starts");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let asked = Arc::default();
        let mut tasks = JoinSet::new();
        let behaviour: Arc<Behaviour> = Arc::new(behaviour);
        tasks.spawn(serve(listener, acceptor, behaviour, Arc::clone(&asked)));
        Self {
            address,
            authority: cert.pem(),
            asked,
            _tasks: tasks,
        }
    }

    /// Starts a webhook that allows everything.
    pub(super) async fn allowing() -> Self {
        Self::start(|_, _| Reply::Response(json!({"allowed": true}))).await
    }

    /// Starts one that allows everything, whose certificate is by an authority that is not in the bundle.
    ///
    /// The certificate is valid from 2020 until a year.
    pub(super) async fn signed(until: i32) -> Self {
        let authority = KeyPair::generate().expect("keys are made");
        let authority = CertifiedIssuer::self_signed(CertificateParams::default(), authority)
            .expect("an authority signs itself");
        let mut server = CertificateParams::new(names()).expect("the names are good");
        server.not_before = date_time_ymd(2020, 1, 1);
        server.not_after = date_time_ymd(until, 1, 1);
        let signing_key = KeyPair::generate().expect("keys are made");
        let cert = server.signed_by(&signing_key, &authority);
        let certificate = CertifiedKey {
            cert: cert.expect("an authority signs"),
            signing_key,
        };
        Self::start_as(certificate, |_, _| {
            Reply::Response(json!({"allowed": true}))
        })
        .await
    }

    /// Returns the requests in what it was asked so far, and forgets them.
    pub(super) fn asked(&self) -> Vec<Value> {
        let asked = std::mem::take(&mut *self.asked.lock());
        asked
            .into_iter()
            .map(|(_, review)| review["request"].clone())
            .collect()
    }

    /// Returns the paths at which it was asked so far, and forgets them.
    pub(super) fn paths(&self) -> Vec<String> {
        let asked = std::mem::take(&mut *self.asked.lock());
        asked.into_iter().map(|(path, _)| path).collect()
    }

    /// Returns where it is, as configurations say it.
    pub(super) fn client(&self, path: &str) -> Value {
        let url = format!("https://{}{path}", self.address);
        json!({"url": url, "caBundle": BASE64.encode(&self.authority)})
    }

    /// Returns a webhook of a configuration, for everything done to ConfigMaps.
    pub(super) fn webhook(&self, path: &str, more: Value) -> Value {
        webhook(self.client(path), more)
    }
}

/// The names in the certificate of a webhook.
fn names() -> Vec<String> {
    ["127.0.0.1", "hook.default.svc"]
        .map(str::to_owned)
        .to_vec()
}

/// Returns a webhook of a configuration, for everything done to ConfigMaps.
pub(super) fn webhook(client: Value, more: Value) -> Value {
    let mut webhook = json!({
        "name": "h.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
            "operations": ["*"]}],
    });
    webhook["clientConfig"] = client;
    with(webhook, more)
}

/// Registers webhooks under the name of a configuration.
pub(super) async fn register(bench: &Bench, path: &str, name: &str, webhooks: Value) {
    let mut configuration = json!({"metadata": {"name": name}});
    configuration["webhooks"] = webhooks;
    let answer = bench.post(path, &configuration).await;
    assert_eq!(answer.code.as_u16(), 201, "{}", answer.text);
}

/// Returns a response that allows and changes.
pub(super) fn patching(operations: &Value) -> Reply {
    let patch = BASE64.encode(operations.to_string());
    Reply::Response(json!({"allowed": true, "patchType": "JSONPatch", "patch": patch}))
}

async fn serve(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    behaviour: Arc<Behaviour>,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, behaviour, asked) =
            (acceptor.clone(), Arc::clone(&behaviour), Arc::clone(&asked));
        connections.spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let service = service_fn(|request| answer(request, &*behaviour, &asked));
            // A connection that is closed on purpose ends with an error.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    behaviour: &Behaviour,
    asked: &Mutex<Vec<(String, Value)>>,
) -> Result<Response<Full<Bytes>>, Box<dyn std::error::Error + Send + Sync>> {
    let path = request
        .uri()
        .path_and_query()
        .expect("a webhook of a test starts")
        .as_str()
        .to_owned();
    let body = request.into_body().collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&body)?;
    asked.lock().push((path.clone(), review.clone()));
    let (code, body) = match behaviour(&path, &review) {
        Reply::Response(mut response) => {
            if response.get("uid").is_none() {
                response["uid"] = review["request"]["uid"].clone();
            }
            let answer = json!({"kind": review["kind"], "apiVersion": review["apiVersion"],
                "response": response});
            (200, answer.to_string())
        }
        Reply::Bytes(code, body) => (code, body),
        Reply::Silent => std::future::pending().await,
        Reply::Close => return Err("closed on purpose".into()),
    };
    Ok(Response::builder()
        .status(code)
        .header("content-type", "application/json")
        .body(Full::new(body.into()))?)
}
