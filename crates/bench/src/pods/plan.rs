//! What the parts of a pod have in common.

use fastrand::Rng;
use serde_json::{Map, Value};

/// How many pods a deployment has.
const REPLICAS: usize = 8;

/// How many teams own deployments.
const TEAMS: usize = 100;

/// How many namespaces there are.
pub(crate) const NAMESPACES: usize = 50;

/// One pod in this many is a canary.
const CANARIES: usize = 100;

const WORDS: [&str; 20] = [
    "checkout", "catalog", "search", "billing", "ledger", "gateway", "session", "profile",
    "mailer", "report", "ingest", "metrics", "pricing", "stock", "returns", "tracking", "fraud",
    "audit", "media", "assets",
];

const ROLES: [&str; 10] = [
    "api", "worker", "web", "cache", "proxy", "cron", "sync", "export", "index", "stream",
];

/// What the parts of a pod have in common.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) app: String,
    /// What the deployment's template hashes to.
    pub(super) hash: String,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) node: String,
    pub(super) owner: String,
    pub(super) ip: String,
    pub(super) image_tag: String,
    pub(super) team: String,
    pub(super) containers: usize,
    /// Names and values.
    pub(super) env: Vec<(String, String)>,
    /// When it was scheduled, in seconds of a day.
    pub(super) started: u32,
    pub(super) canary: bool,
}

/// Returns the name of a namespace.
pub(crate) fn namespace(number: usize) -> String {
    format!("ns-{}-{number:02}", WORDS[number % WORDS.len()])
}

/// Returns the label `team` of the pods a team owns: one pod in a hundred.
pub(crate) fn team(number: usize) -> String {
    format!("{}-{}", WORDS[number % WORDS.len()], number % TEAMS)
}

/// Returns the name of the node of a pod.
pub(crate) fn node(index: usize) -> String {
    format!("ip-10-0-{}-{}.internal", index / 7 % 40, index % 7 + 10)
}

/// Returns two words that are in the names of one deployment in two hundred, about.
pub(crate) fn words(number: usize) -> [&'static str; 2] {
    [WORDS[number % WORDS.len()], ROLES[number / 3 % ROLES.len()]]
}

impl Plan {
    pub(super) fn new(index: usize, rng: &mut Rng) -> Self {
        let number = index / REPLICAS;
        // What all pods of a deployment share depends on its number alone.
        // Values that pods share are what compression and sharing of texts live from, so they must be as in a cluster.
        let mut shared = Rng::with_seed(number as u64 + 1);
        let (word, role) = (
            WORDS[shared.usize(..WORDS.len())],
            ROLES[number % ROLES.len()],
        );
        let app = format!("{word}-{role}-{}", hex(&mut shared, 3));
        let hash = hex(&mut shared, 10);
        Self {
            // The suffix is the number of the pod, by which handlers find the bit of a pod.
            name: format!("{app}-{hash}-{}", base36(index)),
            namespace: namespace(number % NAMESPACES),
            node: node(index),
            owner: uuid(&mut shared),
            ip: format!("10.{}.{}.{}", rng.u8(16..32), rng.u8(..), rng.u8(1..)),
            image_tag: format!(
                "v{}.{}.{}",
                shared.u8(1..5),
                shared.u8(..40),
                shared.u8(..20)
            ),
            // One deployment in ten has a sidecar.
            containers: 1 + usize::from(number.is_multiple_of(10)),
            env: (0..shared.usize(1..4))
                .map(|at| env(at, &app, &mut shared))
                .collect(),
            team: team(number),
            started: rng.u32(..80_000),
            canary: index.is_multiple_of(CANARIES),
            app,
            hash,
        }
    }

    /// Returns a time some seconds after the pod was scheduled.
    pub(super) fn time(&self, after: u32) -> String {
        let seconds = self.started + after;
        let (hour, minute) = (seconds / 3600, seconds / 60 % 60);
        format!(
            "2026-11-{:02}T{hour:02}:{minute:02}:{:02}Z",
            self.started % 20 + 1,
            seconds % 60
        )
    }
}

/// Makes an environment variable of a deployment.
pub(super) fn env(at: usize, app: &str, shared: &mut Rng) -> (String, String) {
    let word = WORDS[shared.usize(..WORDS.len())];
    let secret = hex(shared, 12);
    let (name, value) = match at {
        0 => ("LISTEN_ON", format!(":{}", shared.u16(8000..9000))),
        1 => (
            "DATABASE_URL",
            format!("postgres://{word}-{secret}.data.svc:5432/{app}"),
        ),
        _ => (
            "UPSTREAM",
            format!("http://{word}-{}.svc/{secret}", ROLES[shared.usize(..10)]),
        ),
    };
    let suffix = if at > 1 {
        word.to_uppercase()
    } else {
        String::new()
    };
    (format!("{name}{suffix}"), value)
}

pub(crate) fn seed(text: &str) -> u64 {
    text.bytes()
        .fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte))
}

pub(crate) fn base36(mut number: usize) -> String {
    let mut digits = [b'0'; 5];
    for digit in digits.iter_mut().rev() {
        *digit = b"0123456789abcdefghijklmnopqrstuvwxyz"[number % 36];
        number /= 36;
    }
    digits.map(char::from).iter().collect()
}

pub(crate) fn hex(rng: &mut Rng, digits: usize) -> String {
    let digit = |_| char::from(b"0123456789abcdef"[rng.usize(..16)]);
    (0..digits).map(digit).collect()
}

fn uuid(rng: &mut Rng) -> String {
    let lengths = [8, 4, 4, 4, 12];
    lengths.map(|length| hex(rng, length)).join("-")
}

/// Makes an object of members that are named and given one by one.
pub(crate) fn object(members: impl IntoIterator<Item = (String, Value)>) -> Value {
    Value::Object(members.into_iter().collect::<Map<_, _>>())
}
