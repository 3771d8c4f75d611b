//! A kubeconfig and an environment, made from a seed.

use std::fmt;
use std::path::Path;

use anyhow::Result;
use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::choose::{pick, set};
use super::files::Files;
use super::stage::{Stage, base64, put};
use super::user;

/// Files and variables of the environment.
pub(super) struct Case {
    pub(super) seed: u64,
    /// The kubeconfigs, in the order of `KUBECONFIG`.
    files: Vec<String>,
    /// Whether `KUBECONFIG` has relative paths, or is not set.
    place: Place,
    variables: Vec<(&'static str, String)>,
    /// Certificates, tokens and plugins: names and contents.
    beside: Vec<(&'static str, String)>,
    /// Whether the server has no TLS and is on this machine. kubectl sends no credentials there.
    pub(super) may_lack_tls: bool,
    /// Whether kubectl refuses the case for a reason that does not matter.
    pub(super) may_be_refused_by_kubectl: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Absolute,
    Relative,
    Home,
}

impl Case {
    pub(super) fn new(stage: &Stage, seed: u64) -> Self {
        let rng = &mut Rng::with_seed(seed);
        let mut case = Self {
            seed,
            files: Vec::new(),
            place: pick(
                rng,
                [(8, Place::Absolute), (2, Place::Relative), (1, Place::Home)],
            ),
            variables: Vec::new(),
            beside: beside(stage),
            may_lack_tls: false,
            may_be_refused_by_kubectl: false,
        };
        let cluster = case.cluster(rng, stage);
        let (user, is_refused) = user::user(rng, stage);
        let count = if case.place == Place::Home {
            1
        } else {
            rng.usize(1..=3)
        };
        let mut files = Files::new(count);
        files.add_used(rng, stage, &cluster, &user);
        case.may_be_refused_by_kubectl |= files.add_unused(rng) || is_refused;
        case.files = files.texts(rng);
        case.proxies(rng, stage);
        case
    }

    fn cluster(&mut self, rng: &mut Rng, stage: &Stage) -> Value {
        let mut members = Map::new();
        let (one, two, plain) = (stage.ports["one"], stage.ports["two"], stage.ports["plain"]);
        let server = pick(
            rng,
            [
                (40, format!("https://127.0.0.1:{one}")),
                (8, format!("https://localhost:{two}")),
                (25, format!("https://0.0.0.0:{one}")),
                (8, format!("http://127.0.0.1:{plain}")),
                (10, format!("http://0.0.0.0:{plain}")),
                (2, String::new()),
            ],
        );
        self.may_lack_tls = server.starts_with("http://127");
        members.insert("server".to_owned(), server.into());
        self.authority(rng, stage, &mut members);
        let name = pick(rng, [(10, "server.test"), (2, "wrong.test")]);
        set(rng, &mut members, "tls-server-name", 10, name);
        let first = stage.ports["first"];
        let proxy = pick(
            rng,
            [
                (10, format!("http://127.0.0.1:{first}")),
                (3, format!("http://me:hunter2@127.0.0.1:{first}")),
                (2, format!("127.0.0.1:{first}")),
                (2, format!("socks4://me:hunter2@127.0.0.1:{first}")),
            ],
        );
        set(rng, &mut members, "proxy-url", 12, proxy);
        set(rng, &mut members, "disable-compression", 3, true);
        if members.get("disable-compression") == Some(&json!("")) {
            members.remove("disable-compression");
        }
        members.into()
    }

    fn authority(&mut self, rng: &mut Rng, stage: &Stage, members: &mut Map<String, Value>) {
        let data = base64(&stage.authority);
        let chosen = pick(
            rng,
            [
                (40, json!({"certificate-authority-data": data})),
                (15, json!({"certificate-authority": "ca.crt"})),
                (
                    10,
                    json!({"certificate-authority-data": "", "certificate-authority": "ca.crt"}),
                ),
                (
                    5,
                    json!({"certificate-authority-data": data, "certificate-authority": ""}),
                ),
                (
                    5,
                    json!({"certificate-authority-data": null, "certificate-authority": "./ca.crt"}),
                ),
                (
                    15,
                    json!({"insecure-skip-tls-verify": true, "certificate-authority": ""}),
                ),
                (3, json!({})),
                (
                    3,
                    json!({"certificate-authority-data": base64(&stage.other_authority)}),
                ),
                (
                    3,
                    json!({"insecure-skip-tls-verify": true, "certificate-authority-data": data}),
                ),
                (2, json!({"certificate-authority": "missing.crt"})),
                (
                    2,
                    json!({"certificate-authority-data": base64("no certificate")}),
                ),
                (
                    3,
                    json!({"certificate-authority-data": data, "certificate-authority": "ca.crt"}),
                ),
            ],
        );
        let is_set = |name: &str| chosen[name].as_str().is_some_and(|text| !text.is_empty());
        self.may_be_refused_by_kubectl |=
            is_set("certificate-authority-data") && is_set("certificate-authority");
        members.extend(chosen.as_object().cloned().unwrap_or_default());
    }

    fn proxies(&mut self, rng: &mut Rng, stage: &Stage) {
        let (one, second) = (stage.ports["one"], stage.ports["second"]);
        for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"] {
            let value = pick(
                rng,
                [
                    (20, None),
                    (3, Some(format!("http://127.0.0.1:{second}"))),
                    (2, Some(format!("127.0.0.1:{second}"))),
                    (1, Some(format!("http://me:hunter2@127.0.0.1:{second}"))),
                    (1, Some(String::new())),
                ],
            );
            self.variables.extend(value.map(|value| (name, value)));
        }
        for name in ["NO_PROXY", "no_proxy"] {
            let value = pick(
                rng,
                [
                    (20, None),
                    (1, Some(String::new())),
                    (1, Some("*".to_owned())),
                    (1, Some("0.0.0.0".to_owned())),
                    (1, Some("example.com, 0.0.0.0/8".to_owned())),
                    (1, Some(format!("0.0.0.0:{one}"))),
                    (1, Some("0.0.0.0:1,10.0.0.0/8,.0.0.0".to_owned())),
                ],
            );
            self.variables.extend(value.map(|value| (name, value)));
        }
    }

    /// Writes the files into a folder.
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder)?;
        for (name, text) in &self.beside {
            put(folder, name, text)?;
        }
        for (at, text) in self.files.iter().enumerate() {
            match self.place {
                Place::Home => {
                    // Relative paths are those of the file.
                    put(folder, ".kube/config", text)?;
                    for (name, text) in &self.beside {
                        put(&folder.join(".kube"), name, text)?;
                    }
                }
                _ => put(folder, &format!("config{at}"), text)?,
            }
        }
        Ok(())
    }

    /// Returns the variables of the environment.
    pub(super) fn environment(&self, folder: &Path) -> Vec<(&'static str, String)> {
        let mut variables = self.variables.clone();
        let name = |name: String| match self.place {
            Place::Relative => name,
            _ => folder.join(name).display().to_string(),
        };
        let mut paths: Vec<String> = (0..self.files.len())
            .map(|at| name(format!("config{at}")))
            .collect();
        // Names of nothing, and of files that are missing.
        let rng = &mut Rng::with_seed(self.seed);
        for odd in [String::new(), name("missing".to_owned())] {
            if rng.u32(..5) == 0 {
                paths.insert(rng.usize(..=paths.len()), odd);
            }
        }
        if self.place != Place::Home {
            variables.push(("KUBECONFIG", paths.join(":")));
        }
        variables
    }
}

/// Returns the files beside the kubeconfigs.
fn beside(stage: &Stage) -> Vec<(&'static str, String)> {
    let [ann, bob] = &stage.users;
    let credential = |version: &str, status: Value| {
        json!({"kind": "ExecCredential", "apiVersion": format!("client.authentication.k8s.io/{version}"), "status": status})
            .to_string()
    };
    let certificate = json!({"clientCertificateData": bob.certificate, "clientKeyData": bob.key});
    let half = json!({"clientCertificateData": bob.certificate, "clientKeyData": ""});
    let token = json!({"token": "tok-exec", "clientCertificateData": ""});
    vec![
        ("ca.crt", stage.authority.clone()),
        ("ann.crt", ann.certificate.clone()),
        ("ann.key", ann.key.clone()),
        ("bob.crt", bob.certificate.clone()),
        ("bob.key", bob.key.clone()),
        ("token", "tok-file\n".to_owned()),
        ("sub/token", " tok-sub\r\n\n".to_owned()),
        ("empty-token", " \n".to_owned()),
        ("token-v1.json", credential("v1", token.clone())),
        ("token-v1beta1.json", credential("v1beta1", token)),
        ("certificate-v1.json", credential("v1", certificate.clone())),
        (
            "certificate-v1beta1.json",
            credential("v1beta1", certificate),
        ),
        ("half-v1.json", credential("v1", half.clone())),
        ("half-v1beta1.json", credential("v1beta1", half)),
        ("nothing-v1.json", credential("v1", json!({}))),
        ("nothing-v1beta1.json", credential("v1beta1", json!({}))),
    ]
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in self.environment(Path::new("FOLDER")) {
            writeln!(f, "{name}={value}")?;
        }
        // Long lines are data.
        let short = |line: &str| line.chars().take(160).collect::<String>();
        for (at, text) in self.files.iter().enumerate() {
            writeln!(f, "config{at}:")?;
            text.lines()
                .try_for_each(|line| writeln!(f, "    {}", short(line)))?;
        }
        Ok(())
    }
}
