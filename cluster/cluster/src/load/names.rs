//! Generates names and other random texts.

use fastrand::Rng;

pub(super) const WORDS: [&str; 20] = [
    "checkout", "catalog", "search", "billing", "ledger", "gateway", "session", "profile",
    "mailer", "report", "ingest", "metrics", "pricing", "stock", "returns", "tracking", "fraud",
    "audit", "media", "assets",
];

pub(super) const ROLES: [&str; 10] = [
    "api", "worker", "web", "cache", "proxy", "cron", "sync", "export", "index", "stream",
];

/// The characters of a generated name, as the API server makes them.
const SUFFIX: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Returns the random numbers of one item, independent of all other items.
pub(super) fn random(seed: u64, what: u64, number: usize) -> Rng {
    // Large odd factors, so that neighbouring numbers do not lead to similar seeds.
    let mixed = (number as u64)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Rng::with_seed(seed.wrapping_mul(0xff51_afd7_ed55_8ccd) ^ what << 56 ^ mixed)
}

pub(super) fn hex(rng: &mut Rng, digits: usize) -> String {
    pick(rng, b"0123456789abcdef", digits)
}

pub(super) fn suffix(rng: &mut Rng, length: usize) -> String {
    pick(rng, SUFFIX, length)
}

pub(super) fn word(rng: &mut Rng) -> &'static str {
    WORDS[rng.usize(..WORDS.len())]
}

pub(super) fn role(rng: &mut Rng) -> &'static str {
    ROLES[rng.usize(..ROLES.len())]
}

/// Returns the name of a namespace.
pub(super) fn namespace(number: usize) -> String {
    format!("{}-{number:02}", WORDS[number % WORDS.len()])
}

/// Returns the name of a node.
pub(super) fn node(number: usize) -> String {
    let address = address(number).map(|part| part.to_string());
    format!("ip-{}.internal", address.join("-"))
}

/// Returns the address of a node.
pub(super) fn address(number: usize) -> [usize; 4] {
    // 250 addresses in each subnet, and as many subnets as are needed.
    [
        10,
        number / 250 / 250 % 250,
        number / 250 % 250,
        number % 250 + 4,
    ]
}

pub(super) fn dotted(address: [usize; 4]) -> String {
    address.map(|part| part.to_string()).join(".")
}

/// Returns a time of January 2026 or a little later, the same in every run.
pub(super) fn time(seconds: u32) -> String {
    let (day, hour) = (seconds / 86_400 + 1, seconds / 3600 % 24);
    // January and February are enough: a load spans less.
    let (month, day) = if day > 31 { (2, day - 31) } else { (1, day) };
    let (minute, second) = (seconds / 60 % 60, seconds % 60);
    format!("2026-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Returns a version 4 UUID.
pub(super) fn uid(rng: &mut Rng) -> String {
    crate::random::uuid(rng.u128(..))
}

fn pick(rng: &mut Rng, from: &[u8], length: usize) -> String {
    (0..length)
        .map(|_| char::from(from[rng.usize(..from.len())]))
        .collect()
}
