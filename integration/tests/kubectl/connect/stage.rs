//! Servers and proxies that record requests.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// A request as a server has seen it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    server: &'static str,
    authorization: Option<String>,
    /// The name in the client's certificate.
    certificate: Option<&'static str>,
    /// The headers of an impersonated user.
    impersonation: Vec<String>,
    proxy: Option<&'static str>,
}

impl Seen {
    fn new(server: &'static str, proxy: Option<&'static str>) -> Self {
        Self {
            server,
            authorization: None,
            certificate: None,
            impersonation: Vec::new(),
            proxy,
        }
    }

    pub(super) fn without_credentials(&self) -> Self {
        let (authorization, certificate) = (None, None);
        Self {
            authorization,
            certificate,
            ..self.clone()
        }
    }
}

/// A certificate and its key as PEM.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// What servers and proxies have seen.
#[derive(Debug, Default)]
struct Records {
    requests: Mutex<HashMap<String, Seen>>,
    /// The proxies, by the port from which they connect to a server.
    proxies: Mutex<HashMap<u16, &'static str>>,
}

/// Two servers with TLS, one without, and two proxies.
pub(super) struct Stage {
    folder: PathBuf,
    records: Arc<Records>,
    /// The ports by the names of servers and proxies.
    pub(super) ports: HashMap<&'static str, u16>,
    pub(super) authority: String,
    pub(super) other_authority: String,
    pub(super) users: [Pair; 2],
    tasks: JoinSet<()>,
}

/// The names of the users with a certificate.
const USERS: [&str; 2] = ["ann", "bob"];

struct Authority {
    certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        Ok(Self {
            certificate,
            issuer: Issuer::new(params, key),
        })
    }

    fn sign(&self, name: &str) -> Result<(rcgen::Certificate, KeyPair)> {
        let names = ["127.0.0.1", "0.0.0.0", "localhost", "server.test"].map(str::to_owned);
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate()?;
        Ok((params.signed_by(&key, &self.issuer)?, key))
    }
}

impl Stage {
    pub(super) async fn start() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("lariat-connect-{}", fastrand::u64(..)));
        std::fs::create_dir(&folder)?;
        let records = Arc::<Records>::default();
        let (authority, other) = (Authority::new()?, Authority::new()?);
        let signed = [authority.sign(USERS[0])?, authority.sign(USERS[1])?];
        let known: Vec<_> = signed
            .iter()
            .map(|(certificate, _)| certificate.der().to_vec())
            .collect();
        let users = signed.map(|(certificate, key)| Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        });
        let mut stage = Self {
            folder,
            records,
            ports: HashMap::new(),
            authority: authority.certificate.pem(),
            other_authority: other.certificate.pem(),
            users,
            tasks: JoinSet::new(),
        };
        for name in ["one", "two"] {
            let tls = Some((tls(&authority)?, known.clone()));
            stage.server(name, tls).await?;
        }
        stage.server("plain", None).await?;
        stage.proxy("first").await?;
        stage.proxy("second").await?;
        Ok(stage)
    }

    /// Returns a folder for a case.
    pub(super) fn folder(&self, seed: u64) -> PathBuf {
        self.folder.join(seed.to_string())
    }

    /// Returns the request to a path.
    pub(super) fn seen(&self, path: &str) -> Option<Seen> {
        self.records.requests.lock().get(path).cloned()
    }

    /// Starts a server.
    async fn server(
        &mut self,
        name: &'static str,
        tls: Option<(TlsAcceptor, Vec<Vec<u8>>)>,
    ) -> Result<()> {
        let listener = TcpListener::bind(("0.0.0.0", 0)).await?;
        self.ports.insert(name, listener.local_addr()?.port());
        let records = Arc::clone(&self.records);
        self.tasks.spawn(async move {
            let mut served = JoinSet::new();
            while let Ok((stream, peer)) = listener.accept().await {
                let (records, tls) = (Arc::clone(&records), tls.clone());
                served.spawn(async move {
                    let proxy = records.proxies.lock().get(&peer.port()).copied();
                    // A client that leaves early is not seen.
                    let _ = serve(stream, tls, &records, Seen::new(name, proxy)).await;
                });
            }
        });
        Ok(())
    }

    /// Starts a proxy, which leads to the servers by their port, whatever their host is.
    async fn proxy(&mut self, name: &'static str) -> Result<()> {
        let listener = TcpListener::bind(("0.0.0.0", 0)).await?;
        self.ports.insert(name, listener.local_addr()?.port());
        let records = Arc::clone(&self.records);
        self.tasks.spawn(async move {
            let mut served = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let records = Arc::clone(&records);
                served.spawn(async move {
                    let _ = forward(stream, &records, name).await;
                });
            }
        });
        Ok(())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A folder that is left behind does no harm.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn tls(authority: &Authority) -> Result<TlsAcceptor> {
    let (certificate, key) = authority.sign("server")?;
    let mut roots = RootCertStore::empty();
    roots.add(authority.certificate.der().clone())?;
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots))
        .allow_unauthenticated()
        .build()?;
    let key = key.serialize_der().try_into().ok().context("a key")?;
    let tls = ServerConfig::builder().with_client_cert_verifier(verifier);
    let tls = tls.with_single_cert(vec![certificate.der().clone()], key)?;
    Ok(TlsAcceptor::from(Arc::new(tls)))
}

/// Answers one request.
async fn serve(
    stream: TcpStream,
    tls: Option<(TlsAcceptor, Vec<Vec<u8>>)>,
    records: &Records,
    seen: Seen,
) -> Result<()> {
    let Some((acceptor, known)) = tls else {
        return answer(stream, records, seen).await;
    };
    let stream = acceptor.accept(stream).await?;
    let shown = stream
        .get_ref()
        .1
        .peer_certificates()
        .and_then(|all| all.first());
    let at = shown.and_then(|shown| known.iter().position(|der| **der == **shown));
    let certificate = at.map(|at| USERS[at]);
    answer(
        stream,
        records,
        Seen {
            certificate,
            ..seen
        },
    )
    .await
}

async fn answer(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    records: &Records,
    mut seen: Seen,
) -> Result<()> {
    let head = head(&mut stream).await?;
    let path = head
        .split_whitespace()
        .nth(1)
        .unwrap_or_default()
        .to_owned();
    for line in head.lines() {
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        let name = name.to_lowercase();
        if name == "authorization" {
            seen.authorization = Some(value.to_owned());
        } else if name.starts_with("impersonate-") {
            seen.impersonation.push(format!("{name}: {value}"));
        }
    }
    seen.impersonation.sort();
    records.requests.lock().insert(path, seen);
    let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    Ok(())
}

/// Reads up to the end of the headers.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8(head)?)
}

/// Leads a connection to a server: after `CONNECT`, or with the URL of the server in the request.
async fn forward(mut stream: TcpStream, records: &Records, name: &'static str) -> Result<()> {
    let head = head(&mut stream).await?;
    let target = head
        .split_whitespace()
        .nth(1)
        .context("a target")?
        .to_owned();
    let is_tunnel = head.starts_with("CONNECT ");
    let (authority, path) = if is_tunnel {
        (&target[..], "")
    } else {
        let rest = target.strip_prefix("http://").context("a URL")?;
        rest.split_at(rest.find('/').context("a path")?)
    };
    let port: u16 = authority.rsplit_once(':').context("a port")?.1.parse()?;
    // The server must know the port before it accepts.
    let socket = tokio::net::TcpSocket::new_v4()?;
    socket.bind(([127, 0, 0, 1], 0).into())?;
    let own = socket.local_addr()?.port();
    records.proxies.lock().insert(own, name);
    let mut server = socket.connect(([127, 0, 0, 1], port).into()).await?;
    if is_tunnel {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    } else {
        server
            .write_all(head.replacen(&target, path, 1).as_bytes())
            .await?;
    }
    let copied = copy_bidirectional(&mut stream, &mut server).await;
    // Another connection may have the port next.
    records.proxies.lock().remove(&own);
    copied?;
    Ok(())
}

/// Encodes a text for a member `*-data`.
pub(super) fn base64(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// Writes a file of a case, and the folders to it.
pub(super) fn put(folder: &Path, name: &str, text: &str) -> Result<()> {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().context("a folder")?)?;
    Ok(std::fs::write(path, text)?)
}
