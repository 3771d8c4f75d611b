//! A kubeconfig and an environment, made from a seed.

use std::fmt;
use std::path::Path;

use anyhow::Result;
use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::stage::{Stage, base64, put};

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

/// Chooses an option by its weight.
fn pick<T>(rng: &mut Rng, options: impl IntoIterator<Item = (u32, T)>) -> T {
    let mut options: Vec<_> = options.into_iter().collect();
    let all: u32 = options.iter().map(|(weight, _)| weight).sum();
    let mut at = rng.u32(..all);
    let chosen = options.iter().position(|(weight, _)| {
        let is_here = at < *weight;
        at = at.saturating_sub(*weight);
        is_here
    });
    options
        .swap_remove(chosen.expect("the weights are added"))
        .1
}

/// Sets a member: mostly not, else to nothing, `null` or a value.
fn set(
    rng: &mut Rng,
    members: &mut Map<String, Value>,
    name: &str,
    weight: u32,
    value: Value,
) -> bool {
    let chosen = pick(
        rng,
        [
            (70, None),
            (8, Some(json!(""))),
            (5, Some(Value::Null)),
            (weight, Some(value.clone())),
        ],
    );
    let is_set = chosen.as_ref() == Some(&value);
    if let Some(value) = chosen {
        members.insert(name.to_owned(), value);
    }
    is_set
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
        let user = case.user(rng, stage);
        case.spread(rng, stage, &cluster, &user);
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
        set(rng, &mut members, "tls-server-name", 10, name.into());
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
        set(rng, &mut members, "proxy-url", 12, proxy.into());
        set(rng, &mut members, "disable-compression", 3, true.into());
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

    fn user(&mut self, rng: &mut Rng, stage: &Stage) -> Value {
        let mut members = Map::new();
        set(rng, &mut members, "token", 30, "tok-inline".into());
        let file = pick(
            rng,
            [
                (10, "token"),
                (3, "sub/token"),
                (2, "empty-token"),
                (2, "missing-token"),
            ],
        );
        set(rng, &mut members, "tokenFile", 25, file.into());
        set(rng, &mut members, "username", 8, "me".into());
        set(rng, &mut members, "password", 8, "pw-basic".into());
        let [ann, bob] = &stage.users;
        let is_data = set(
            rng,
            &mut members,
            "client-certificate-data",
            15,
            base64(&ann.certificate).into(),
        );
        let file = pick(rng, [(10, "bob.crt"), (1, "missing.crt")]);
        let is_file = set(rng, &mut members, "client-certificate", 15, file.into());
        let weight = if is_data || is_file { 400 } else { 3 };
        let (right, wrong) = if is_data { (ann, bob) } else { (bob, ann) };
        let key = pick(rng, [(10, right), (1, wrong)]);
        let is_key = set(
            rng,
            &mut members,
            "client-key-data",
            weight,
            base64(&key.key).into(),
        );
        let weight = if is_key { 3 } else { weight };
        let file = if is_data { "ann.key" } else { "bob.key" };
        let is_key_file = set(rng, &mut members, "client-key", weight, file.into());
        self.may_be_refused_by_kubectl |= is_data && is_file || is_key && is_key_file;
        let exec = exec(rng);
        if set(rng, &mut members, "exec", 25, exec) || members.get("exec") == Some(&json!("")) {
            members.retain(|name, value| name != "exec" || value != "");
        }
        let is_there = |name: &str| {
            members
                .get(name)
                .is_some_and(|value| !value.is_null() && value != "")
        };
        let has_any = ["token", "tokenFile", "username", "exec"]
            .iter()
            .any(|name| is_there(name));
        if !has_any && !is_data && !is_file && rng.u32(..10) > 0 {
            members.insert("token".to_owned(), "tok-inline".into());
        }
        if set(rng, &mut members, "as", 10, "carol".into()) {
            members.insert(
                "as-groups".to_owned(),
                pick(
                    rng,
                    [(1, json!(["g1", "g2"])), (1, json!([])), (1, json!(null))],
                ),
            );
            members.insert(
                "as-user-extra".to_owned(),
                pick(rng, [(1, json!({"scope": ["a", "b"]})), (2, json!(null))]),
            );
        }
        let weight = if members.get("as") == Some(&json!("carol")) {
            20
        } else {
            2
        };
        set(rng, &mut members, "as-uid", weight, "7".into());
        members.into()
    }

    /// Spreads the entries over files, among others that are not used.
    fn spread(&mut self, rng: &mut Rng, stage: &Stage, cluster: &Value, user: &Value) {
        let count = if self.place == Place::Home {
            1
        } else {
            rng.usize(1..=3)
        };
        let mut files = vec![Map::new(); count];
        let add = |rng: &mut Rng,
                   files: &mut Vec<Map<String, Value>>,
                   list: &str,
                   entry: Value,
                   shadow: Value| {
            let at = rng.usize(..count);
            for (number, entry) in [(at, entry), (at + 1, shadow)] {
                if let Some(file) = files.get_mut(number) {
                    let list = file.entry(list).or_insert_with(|| json!([]));
                    let list = list.as_array_mut().expect("it is a list");
                    let place = rng.usize(..=list.len());
                    list.insert(place, entry);
                }
            }
        };
        let shadow = json!({"name": "k", "cluster": {"server": format!("https://127.0.0.1:{}", stage.ports["two"])}});
        add(
            rng,
            &mut files,
            "clusters",
            json!({"name": "k", "cluster": cluster}),
            shadow,
        );
        let shadow = json!({"name": "u", "user": {"token": "tok-shadow"}});
        add(
            rng,
            &mut files,
            "users",
            json!({"name": "u", "user": user}),
            shadow,
        );
        let (of_cluster, of_user) = (
            pick(
                rng,
                [(40, json!("k")), (1, json!("other")), (1, json!(null))],
            ),
            pick(
                rng,
                [
                    (30, json!("u")),
                    (1, json!("nobody")),
                    (1, json!("")),
                    (1, json!(null)),
                ],
            ),
        );
        let context = json!({"name": "c", "context": {"cluster": of_cluster, "user": of_user, "namespace": ""}});
        let shadow = json!({"name": "c", "context": {"cluster": "x", "user": "x"}});
        add(rng, &mut files, "contexts", context, shadow);
        self.unused(rng, &mut files);
        let chosen = rng.usize(..count);
        for (at, file) in files.iter_mut().enumerate() {
            let current = match at.cmp(&chosen) {
                std::cmp::Ordering::Less => pick(
                    rng,
                    [(2, None), (1, Some(json!(""))), (1, Some(Value::Null))],
                ),
                std::cmp::Ordering::Equal => pick(
                    rng,
                    [(30, Some(json!("c"))), (1, Some(json!("gone"))), (1, None)],
                ),
                std::cmp::Ordering::Greater => pick(rng, [(1, None), (1, Some(json!("x")))]),
            };
            if let Some(current) = current {
                file.insert("current-context".to_owned(), current);
            }
            let head = pick(
                rng,
                [
                    (3, json!({"apiVersion": "v1", "kind": "Config"})),
                    (1, json!({})),
                    (1, json!({"kind": ""})),
                ],
            );
            file.extend(head.as_object().cloned().unwrap_or_default());
            let null = pick(
                rng,
                [
                    (5, None),
                    (1, Some("clusters")),
                    (1, Some("users")),
                    (1, Some("extensions")),
                ],
            );
            if let Some(name) = null.filter(|name| !file.contains_key(*name)) {
                file.insert(name.to_owned(), Value::Null);
            }
        }
        self.files = files
            .into_iter()
            .map(|file| text(rng, &file.into()))
            .collect();
    }

    /// Adds entries that the context does not use.
    fn unused(&mut self, rng: &mut Rng, files: &mut [Map<String, Value>]) {
        let (list, entry, is_refused) = pick(
            rng,
            [
                (20, ("", Value::Null, false)),
                (
                    2,
                    (
                        "contexts",
                        json!({"name": "odd", "context": {"user": "u"}}),
                        false,
                    ),
                ),
                (
                    2,
                    (
                        "users",
                        json!({"name": "odd", "user": {"exec": {"env": [{"name": "A", "value": null}]}}}),
                        false,
                    ),
                ),
                (
                    2,
                    (
                        "users",
                        json!({"name": "odd", "user": {"exec": {"interactiveMode": "Sometimes"}}}),
                        false,
                    ),
                ),
                (
                    1,
                    (
                        "users",
                        json!({"name": "odd", "user": {"exec": {"interactiveMode": ""}}}),
                        false,
                    ),
                ),
                (
                    2,
                    (
                        "clusters",
                        json!({"cluster": {"server": "https://127.0.0.1:1"}}),
                        false,
                    ),
                ),
                (1, ("clusters", json!({"name": null}), false)),
                (
                    1,
                    ("users", json!({"name": "odd", "user": {"token": 5}}), true),
                ),
                (
                    1,
                    (
                        "clusters",
                        json!({"name": "odd", "cluster": {"certificate-authority-data": "*"}}),
                        true,
                    ),
                ),
                (1, ("contexts", json!("odd"), true)),
            ],
        );
        if list.is_empty() {
            return;
        }
        let at = rng.usize(..files.len());
        let known = files[at].entry(list).or_insert_with(|| json!([]));
        known.as_array_mut().expect("it is a list").push(entry);
        self.may_be_refused_by_kubectl |= is_refused;
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

/// Writes a kubeconfig as JSON or YAML; in YAML a member may be there twice.
fn text(rng: &mut Rng, value: &Value) -> String {
    let yaml = lariat::operator::yaml(value).expect("it is JSON");
    match rng.u32(..4) {
        0 => value.to_string(),
        1 => {
            let current = &value["current-context"];
            let twice = current
                .as_str()
                .map_or_else(String::new, |name| format!("current-context: {name:?}\n"));
            format!("# by hand\ncurrent-context: first\n{yaml}{twice}").replace(
                "current-context: first\n",
                if twice.is_empty() {
                    ""
                } else {
                    "current-context: first\n"
                },
            )
        }
        2 => format!("---\n{yaml}"),
        _ => yaml,
    }
}

fn exec(rng: &mut Rng) -> Value {
    let version = pick(rng, [(3, "v1"), (3, "v1beta1"), (1, "v1alpha1")]);
    let prints = pick(
        rng,
        [
            (6, "token"),
            (2, "certificate"),
            (1, "nothing"),
            (1, "half"),
        ],
    );
    let mode = match version {
        "v1" => pick(
            rng,
            [
                (8, json!("Never")),
                (2, json!("IfAvailable")),
                (1, json!(null)),
                (1, json!("Sometimes")),
            ],
        ),
        _ => pick(
            rng,
            [
                (3, json!("Never")),
                (3, json!(null)),
                (1, json!("")),
                (1, json!("sometimes")),
            ],
        ),
    };
    let mut exec = json!({
        "apiVersion": format!("client.authentication.k8s.io/{version}"), "command": "sh",
        "args": ["-c", "cat $FILE-$0.json", version], "interactiveMode": mode,
        "env": [{"name": "FILE", "value": prints}, {"name": "OTHER", "value": null}],
    });
    if rng.u32(..10) == 0 {
        exec["command"] = "".into();
    }
    exec
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
