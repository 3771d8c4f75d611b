//! Contexts with a cluster and a user, made from random members.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD};
use fastrand::Rng;
use serde_json::{Map, Value, json};

/// A context, its cluster and its user.
pub(super) struct Case {
    /// Decides how it is written.
    pub(super) seed: u64,
    pub(super) name: String,
    pub(super) cluster_name: String,
    pub(super) user_name: String,
    pub(super) cluster: Value,
    pub(super) context: Value,
    pub(super) user: Value,
}

/// One of so many members has a value of another type, which kubectl refuses.
const WRONG: u32 = 1_500;

/// Texts that YAML may take for something else.
const ODD: &[&str] = &[
    "",
    " ",
    "~",
    "null",
    "true",
    "yes",
    "No",
    "off",
    "y",
    "5",
    "-1",
    "0644",
    "0x1F",
    "0b1",
    "1_000",
    "1.5",
    "1e3",
    "12:30",
    "2026-01-01",
    ".inf",
    "=",
    "<<",
    "-",
    "- a",
    "? a",
    "a: b",
    "a:",
    "a #b",
    "#a",
    "&a",
    "*a",
    "!a",
    "%a",
    "@a",
    "`a`",
    "{a}",
    "[a]",
    "'a'",
    "\"a\"",
    "a\\n",
    " a ",
    "a\n",
    "a\nb",
    "a\n\n",
    "\ta",
    "ü",
    "\u{1f600}",
    "a\u{85}b",
    "\u{feff}a",
    "a\u{2028}b",
];

const SERVERS: &[&str] = &[
    "https://10.0.0.1:6443",
    "https://10.0.0.1",
    "https://[2001:db8::1]:6443/k8s/clusters/c-1",
    "https://me:p%40w@10.0.0.1",
    "http://127.0.0.1:8080/",
    "http://10.0.0.1",
    "HTTPS://Kubernetes.Default.Svc",
    "10.0.0.1:6443",
    "https://a b",
    "",
];

static AUTHORITY: LazyLock<String> = LazyLock::new(|| {
    let authority = rcgen::generate_simple_self_signed(vec!["a".to_owned()]);
    authority.expect("it can be made").cert.pem()
});

impl Case {
    pub(super) fn new(rng: &mut Rng, number: usize) -> Self {
        let mut name = |kind: &str| format!("{}{kind}{number}", odd(rng));
        let (cluster_name, user_name) = (name("k"), name("u"));
        let mut context = Map::new();
        context.insert("cluster".to_owned(), cluster_name.clone().into());
        context.insert("user".to_owned(), user_name.clone().into());
        set(rng, &mut context, "namespace", 2, text);
        Self {
            seed: rng.u64(..),
            name: format!("c{number}"),
            cluster: cluster(rng),
            user: user(rng),
            context: context.into(),
            cluster_name,
            user_name,
        }
    }
}

fn cluster(rng: &mut Rng) -> Value {
    let mut members = Map::new();
    let server = SERVERS[rng.usize(..SERVERS.len())];
    members.insert("server".to_owned(), server.into());
    set(
        rng,
        &mut members,
        "certificate-authority-data",
        4,
        authority,
    );
    set(rng, &mut members, "certificate-authority", 12, |_| {
        "/dev/null".into()
    });
    set(rng, &mut members, "insecure-skip-tls-verify", 8, |rng| {
        rng.bool().into()
    });
    set(rng, &mut members, "disable-compression", 8, |rng| {
        rng.bool().into()
    });
    set(rng, &mut members, "tls-server-name", 4, text);
    set(rng, &mut members, "proxy-url", 8, |rng| {
        let proxies = [
            "http://a:1",
            "socks5://me:pw@a",
            "https://[::1]:9",
            "a:1",
            "ftp://a",
        ];
        proxies[rng.usize(..proxies.len())].into()
    });
    set(rng, &mut members, "extensions", 8, |rng| {
        let extension = json!({"audience": odd(rng), "list": [1, null, {"a": odd(rng)}]});
        json!([{"name": "client.authentication.k8s.io/exec", "extension": extension}])
    });
    set(rng, &mut members, "unknown", 20, text);
    set(rng, &mut members, "Server", 20, text);
    members.into()
}

fn user(rng: &mut Rng) -> Value {
    let mut members = Map::new();
    set(rng, &mut members, "token", 3, text);
    set(rng, &mut members, "tokenFile", 8, |_| "/dev/null".into());
    set(rng, &mut members, "username", 6, text);
    set(rng, &mut members, "password", 6, text);
    set(rng, &mut members, "client-certificate-data", 6, data);
    set(rng, &mut members, "client-key-data", 4, data);
    set(rng, &mut members, "as", 3, text);
    set(rng, &mut members, "as-uid", 8, text);
    set(rng, &mut members, "as-groups", 8, texts);
    set(rng, &mut members, "as-user-extra", 8, |rng| {
        (0..rng.usize(..3))
            .map(|_| (odd(rng).to_owned(), texts(rng)))
            .collect()
    });
    set(rng, &mut members, "exec", 3, exec);
    set(
        rng,
        &mut members,
        "auth-provider",
        12,
        |rng| json!({"name": "oidc", "config": {"id-token": odd(rng), odd(rng): "a"}}),
    );
    set(rng, &mut members, "unknown", 20, text);
    set(rng, &mut members, "Token", 20, text);
    members.into()
}

fn exec(rng: &mut Rng) -> Value {
    let versions = ["v1", "v1", "v1beta1", "v1alpha1", ""];
    let version = versions[rng.usize(..versions.len())];
    let mut members = Map::new();
    let version = format!("client.authentication.k8s.io/{version}");
    members.insert("apiVersion".to_owned(), version.into());
    members.insert("command".to_owned(), "/bin/login".into());
    set(rng, &mut members, "interactiveMode", 1, |rng| {
        let modes = ["Never", "IfAvailable", "Always", "never"];
        modes[rng.usize(..modes.len())].into()
    });
    set(rng, &mut members, "args", 2, texts);
    set(rng, &mut members, "env", 2, |rng| {
        let variable = |rng: &mut Rng| json!({"name": "A", "value": odd(rng)});
        (0..rng.usize(..3)).map(|_| variable(rng)).collect()
    });
    set(rng, &mut members, "installHint", 4, text);
    set(rng, &mut members, "provideClusterInfo", 4, |rng| {
        rng.bool().into()
    });
    members.into()
}

/// Sets a member to a value, nothing, `null`, or rarely a value of a wrong type.
fn set(
    rng: &mut Rng,
    members: &mut Map<String, Value>,
    name: &str,
    one_of: u32,
    value: impl Fn(&mut Rng) -> Value,
) {
    if rng.u32(..one_of) > 0 {
        return;
    }
    let made = value(rng);
    let is_read = !matches!(name, "unknown" | "Server" | "Token" | "extensions");
    let value = match rng.u32(..WRONG) {
        0 if is_read && made.is_string() => {
            [json!(5), json!(true), json!(["a"]), json!({"a": 1})][rng.usize(..4)].clone()
        }
        1 if is_read && made.is_boolean() => [json!("true"), json!(1)][rng.usize(..2)].clone(),
        2..150 => Value::Null,
        150..250 if made.is_string() => "".into(),
        _ => made,
    };
    members.insert(name.to_owned(), value);
}

fn odd(rng: &mut Rng) -> &'static str {
    ODD[rng.usize(..ODD.len())]
}

fn text(rng: &mut Rng) -> Value {
    match rng.u32(..3) {
        0 => odd(rng).into(),
        1 => format!("{}{}", odd(rng), odd(rng)).into(),
        _ => "plain-text".into(),
    }
}

fn texts(rng: &mut Rng) -> Value {
    let item = |rng: &mut Rng| {
        if rng.u32(..6) == 0 {
            Value::Null
        } else {
            text(rng)
        }
    };
    (0..rng.usize(..3)).map(|_| item(rng)).collect()
}

/// Makes a certificate authority in base64, or something like it.
fn authority(rng: &mut Rng) -> Value {
    let lines = |text: &str, end: &str| {
        let letters: Vec<char> = text.chars().collect();
        let lines: Vec<String> = letters
            .chunks(64)
            .map(|line| line.iter().collect())
            .collect();
        lines.join(end) + end
    };
    let whole = BASE64.encode(&*AUTHORITY);
    match rng.u32(..40) {
        0 => BASE64.encode(odd(rng)).into(),
        1..8 => lines(&whole, "\n").into(),
        8..10 => lines(&whole, "\r\n").into(),
        10 => BASE64
            .encode(format!("text before\n{0}{0}", *AUTHORITY))
            .into(),
        _ => whole.into(),
    }
}

/// Makes bytes in base64, in rare cases wrong ones.
fn data(rng: &mut Rng) -> Value {
    let bytes: Vec<u8> = (0..rng.usize(..20)).map(|_| rng.u8(..)).collect();
    let text = BASE64.encode(&bytes);
    match rng.u32(..2_000) {
        0 => URL_SAFE_NO_PAD.encode(&bytes).into(),
        1 => format!("{text} ").into(),
        2 => text.trim_end_matches('=').into(),
        3..400 => format!("\n{text}\r\n").into(),
        _ => text.into(),
    }
}
