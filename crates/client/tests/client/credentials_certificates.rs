//! Client certificates, and when they are read again.

use std::sync::Arc;

use http::Request;
use hyper::body::Incoming;
use lariat_client::{Http2, from_config, from_kubeconfig};
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::credentials::{Folder, answer, pass, write};
use crate::server::{Server, Speech, listen, serve};

/// A certificate and its key, as PEM.
struct Pair(String, String);

struct Authority {
    certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("these are names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key can be made");
        let certificate = params.self_signed(&key).expect("a certificate can be made");
        Self {
            certificate,
            issuer: Issuer::new(params, key),
        }
    }

    fn sign(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let mut params =
            CertificateParams::new(vec!["127.0.0.1".to_owned()]).expect("these are names");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key can be made");
        (
            params
                .signed_by(&key, &self.issuer)
                .expect("a certificate can be made"),
            key,
        )
    }

    fn pair(&self, name: &str) -> Pair {
        let (certificate, key) = self.sign(name);
        Pair(certificate.pem(), key.serialize_pem())
    }

    /// Starts a server that accepts a certificate with this name, and records its clients.
    async fn start(&self, accepted: Arc<Mutex<&'static str>>) -> (Server, kube::Config) {
        self.start_on(0, accepted).await
    }

    async fn start_on(
        &self,
        port: u16,
        accepted: Arc<Mutex<&'static str>>,
    ) -> (Server, kube::Config) {
        let (certificate, key) = self.sign("server");
        let mut roots = RootCertStore::empty();
        roots
            .add(self.certificate.der().clone())
            .expect("it is an authority");
        let verifier = WebPkiClientVerifier::builder(Arc::new(roots))
            .build()
            .expect("it is an authority");
        let key = key.serialize_der().try_into().expect("it is a key");
        let tls = ServerConfig::builder().with_client_cert_verifier(verifier);
        let mut tls = tls
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("they belong together");
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = listen(port);
        let server = Server::with(listener, move |stream| {
            let (acceptor, accepted) = (acceptor.clone(), Arc::clone(&accepted));
            async move {
                let Ok(stream) = acceptor.accept(stream).await else {
                    return;
                };
                let shown = stream
                    .get_ref()
                    .1
                    .peer_certificates()
                    .expect("it was shown")[0]
                    .to_vec();
                let play = move |_: &Request<Incoming>| {
                    let name = accepted.lock().as_bytes().to_vec();
                    let is_right = shown.windows(name.len()).any(|part| part == name);
                    answer(is_right)
                };
                serve(stream, Speech::Http2(100), Arc::new(play)).await;
            }
        });
        let url = format!("https://127.0.0.1:{}", server.port);
        let mut config = kube::Config::new(url.parse().expect("it is a URL"));
        config.root_cert = Some(vec![self.certificate.der().to_vec()]);
        (server, config)
    }
}

fn json(text: &str) -> String {
    serde_json::to_string(text).expect("it is text")
}

/// Lets a plugin print a certificate.
fn print(folder: &Folder, pair: &Pair) {
    let (certificate, key) = (json(&pair.0), json(&pair.1));
    let status = format!(
        r#"{{"status": {{"clientCertificateData": {certificate}, "clientKeyData": {key}}}}}"#
    );
    folder.write("credential", &status);
}

#[tokio::test]
async fn a_plugin_gives_another_certificate_when_the_old_one_is_refused() {
    let (folder, authority) = (Folder::new("plugin-certificate"), Authority::new());
    let accepted = Arc::new(Mutex::new("first-user"));
    let (server, mut config) = authority.start(Arc::clone(&accepted)).await;
    print(&folder, &authority.pair("first-user"));
    config.auth_info.exec = Some(folder.plugin(""));
    let client = from_config(config, Http2::Negotiated).await.unwrap();
    assert_eq!(write(&client).await, Ok(()));
    assert_eq!(write(&client).await, Ok(()));
    assert_eq!((server.connections(), folder.lines("runs")), (1, 1));
    *accepted.lock() = "second-user";
    print(&folder, &authority.pair("second-user"));
    assert_eq!(write(&client).await, Ok(()));
    assert_eq!(write(&client).await, Ok(()));
    assert_eq!((server.connections(), folder.lines("runs")), (2, 2));
}

#[tokio::test]
async fn certificates_in_files_are_read_again_when_they_are_refused() {
    let (folder, authority) = (Folder::new("file-certificate"), Authority::new());
    let accepted = Arc::new(Mutex::new("first-user"));
    let (server, mut config) = authority.start(Arc::clone(&accepted)).await;
    let put = |pair: Pair| {
        folder.write("tls.crt", &pair.0);
        folder.write("tls.key", &pair.1);
    };
    put(authority.pair("first-user"));
    let user = &mut config.auth_info;
    user.client_certificate = Some(folder.path("tls.crt").display().to_string());
    user.client_key = Some(folder.path("tls.key").display().to_string());
    let client = from_config(config, Http2::Negotiated).await.unwrap();
    assert_eq!(write(&client).await, Ok(()));
    *accepted.lock() = "second-user";
    assert_eq!(write(&client).await, Err(401), "there is no other");
    assert_eq!(server.connections(), 1);
    put(authority.pair("second-user"));
    assert_eq!(write(&client).await, Ok(()));
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn a_certificate_that_tls_refuses_is_replaced_too() {
    let (folder, authority) = (Folder::new("tls-refusal"), Authority::new());
    let (server, mut config) = authority.start(Arc::new(Mutex::new("user"))).await;
    // Of an authority the server does not know.
    print(&folder, &Authority::new().pair("user"));
    config.auth_info.exec = Some(folder.plugin(""));
    let client = from_config(config, Http2::Negotiated).await.unwrap();
    print(&folder, &authority.pair("user"));
    assert_eq!(write(&client).await, Ok(()));
    assert_eq!((server.connections(), folder.lines("runs")), (2, 2));
}

#[tokio::test]
async fn authorities_in_a_file_are_read_again_when_the_server_has_another() {
    let (folder, first, second) = (
        Folder::new("authorities"),
        Authority::new(),
        Authority::new(),
    );
    let (server, _) = first.start(Arc::new(Mutex::new("user"))).await;
    let put = |authority: &Authority| {
        let pair = authority.pair("user");
        folder.write("tls.crt", &pair.0);
        folder.write("tls.key", &pair.1);
        folder.write("ca.crt", &authority.certificate.pem());
    };
    put(&first);
    let url = format!("https://127.0.0.1:{}", server.port);
    let kubeconfig = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url, "certificate-authority": "ca.crt"}}],
        "users": [{"name": "c", "user": {"client-certificate": "tls.crt", "client-key": "tls.key"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    });
    folder.write("config", &kubeconfig.to_string());
    let client = from_kubeconfig(folder.path("config")).await.unwrap();
    assert_eq!(write(&client).await, Ok(()));
    let port = server.stop().await;
    let accepted = Arc::new(Mutex::new("user"));
    let (_server, _) = second.start_on(port, accepted).await;
    put(&second);
    // The connection may be found dead by a request.
    let request = Request::get("/version").body(Vec::new()).unwrap();
    let _ = client.request_text(request).await;
    assert_eq!(write(&client).await, Ok(()));
}

#[tokio::test]
async fn certificates_that_do_not_match_their_key_are_not_used() {
    let (folder, authority) = (Folder::new("mismatch"), Authority::new());
    let accepted = Arc::new(Mutex::new("first-user"));
    let (server, mut config) = authority.start(Arc::clone(&accepted)).await;
    let (first, second) = (authority.pair("first-user"), authority.pair("second-user"));
    folder.write("tls.crt", &first.0);
    folder.write("tls.key", &first.1);
    let user = &mut config.auth_info;
    user.client_certificate = Some(folder.path("tls.crt").display().to_string());
    user.client_key = Some(folder.path("tls.key").display().to_string());
    let client = from_config(config, Http2::Negotiated).await.unwrap();
    assert_eq!(write(&client).await, Ok(()));
    // One of the two files is replaced, or written by half.
    for (certificate, key) in [
        (&second.0[..], &first.1[..]),
        (&second.0[..second.0.len() / 2], &second.1),
        (&second.0, &second.1[..second.1.len() / 2]),
        ("", &second.1),
        (&second.0, " \n"),
    ] {
        folder.write("tls.crt", certificate);
        folder.write("tls.key", key);
        *accepted.lock() = "second-user";
        assert_eq!(write(&client).await, Err(401));
        *accepted.lock() = "first-user";
        assert_eq!(write(&client).await, Ok(()));
    }
    assert_eq!(server.connections(), 1);
    *accepted.lock() = "second-user";
    folder.write("tls.crt", &second.0);
    folder.write("tls.key", &second.1);
    assert_eq!(write(&client).await, Ok(()), "it is read at once");
}

/// Writes a kubeconfig that contains everything.
fn put_data(folder: &Folder, port: u16, authority: &Authority, user: &str) {
    use base64::Engine;
    let data = |pem: &str| base64::engine::general_purpose::STANDARD.encode(pem);
    let pair = authority.pair(user);
    let kubeconfig = serde_json::json!({
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {
            "server": format!("https://127.0.0.1:{port}"),
            "certificate-authority-data": data(&authority.certificate.pem()),
        }}],
        "users": [{"name": "c", "user": {
            "client-certificate-data": data(&pair.0), "client-key-data": data(&pair.1),
        }}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    });
    folder.write("config", &kubeconfig.to_string());
}

#[tokio::test]
async fn kubeconfig_is_read_again_when_authority_or_certificate_are_replaced() {
    let (folder, first, second) = (Folder::new("data"), Authority::new(), Authority::new());
    let accepted = Arc::new(Mutex::new("user"));
    let (server, _) = first.start(Arc::clone(&accepted)).await;
    put_data(&folder, server.port, &first, "user");
    let client = from_kubeconfig(folder.path("config")).await.unwrap();
    assert_eq!(write(&client).await, Ok(()));
    // The API server starts with another certificate before the file is written.
    let port = server.stop().await;
    let (_server, _) = second.start_on(port, Arc::clone(&accepted)).await;
    let request = || Request::get("/version").body(Vec::new()).unwrap();
    while client.request_text(request()).await.is_ok() {}
    put_data(&folder, port, &second, "user");
    crate::credentials::pass(10).await;
    // The connection may be found dead by a request.
    let _ = client.request_text(request()).await;
    assert_eq!(write(&client).await, Ok(()));
    // Another user's certificate, after a 401.
    *accepted.lock() = "other";
    put_data(&folder, port, &second, "other");
    crate::credentials::pass(10).await;
    assert_eq!(write(&client).await, Ok(()));
}

#[tokio::test]
async fn bundles_with_an_odd_certificate_are_used() {
    let (folder, authority) = (Folder::new("bundle"), Authority::new());
    let (server, mut config) = authority.start(Arc::new(Mutex::new("user"))).await;
    let odd = "-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n";
    folder.write(
        "ca.crt",
        &format!("{odd}{}{odd}", authority.certificate.pem()),
    );
    print(&folder, &authority.pair("user"));
    config.auth_info.exec = Some(folder.plugin(""));
    config.root_cert = None;
    config.root_cert_file = Some(folder.path("ca.crt"));
    let client = from_config(config.clone(), Http2::Negotiated)
        .await
        .unwrap();
    assert_eq!(write(&client).await, Ok(()));
    assert_eq!(server.connections(), 1);
    for unusable in [odd, "", "-----BEGIN CERTIFICATE-----\nAQID\n"] {
        folder.write("ca.crt", unusable);
        let error = from_config(config.clone(), Http2::Negotiated)
            .await
            .map(drop);
        let text = error.unwrap_err().to_string();
        assert!(text.contains("certificate authorit"), "{text}");
    }
}

#[tokio::test]
async fn plugin_of_a_token_is_not_run_when_connections_end() {
    let (folder, authority) = (Folder::new("plugin-balancer"), Authority::new());
    let (certificate, key) = authority.sign("balancer");
    let key = key.serialize_der().try_into().expect("it is a key");
    let tls = ServerConfig::builder().with_no_client_auth();
    let mut tls = tls
        .with_single_cert(vec![certificate.der().clone()], key)
        .expect("they belong together");
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    // A balancer without servers: it accepts, and closes.
    let server = Server::with(listen(0), move |stream| {
        let acceptor = acceptor.clone();
        async move { drop(acceptor.accept(stream).await) }
    });
    let url = format!("https://127.0.0.1:{}", server.port);
    let mut config = kube::Config::new(url.parse().expect("it is a URL"));
    config.root_cert = Some(vec![authority.certificate.der().to_vec()]);
    folder.token("first", "");
    config.auth_info.exec = Some(folder.plugin(""));
    let client = from_config(config, Http2::Negotiated).await.unwrap();
    for _ in 0..3 {
        let request = Request::get("/version").body(Vec::new()).unwrap();
        client.request_text(request).await.unwrap_err();
        pass(10).await;
    }
    assert_eq!((server.connections(), folder.lines("runs")), (3, 1));
}
