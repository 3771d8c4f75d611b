//! Objects on the genuine server that a new server does not have.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use lariat_core::clock;
use regex::Regex;
use serde_json::Value;

use crate::kinds::Kind;
use crate::side::Side;

/// Names that sequences give to objects outside of namespaces, and namespaces of sequences.
static OWN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b[dn][0-9a-f]{5}x[0-9]{5}\b").expect("the pattern is correct"));

/// The age from which an object is of a run that has ended, and not of one at the same time.
const OLD: SignedDuration = SignedDuration::from_mins(2);

/// Removes the objects that interrupted runs left, and returns those of others, as `Kind name`.
///
/// Pages and counts of lists would show them.
pub(crate) async fn sweep(genuine: &Side, lariat: &Side, kinds: &[Kind]) -> Result<Vec<String>> {
    let mut foreign = Vec::new();
    // The API server writes Events and Leases of its own, and deleted namespaces take their time.
    let steady = |kind: &&Kind| !matches!(&*kind.kind, "Event" | "Lease" | "Namespace");
    for kind in kinds.iter().filter(steady) {
        let path = kind.everywhere();
        let expected = lariat.get(&path).await?;
        let expected: BTreeSet<&str> = items(&expected).map(name).collect();
        let found = genuine.get(&path).await?;
        for item in items(&found).filter(|item| !expected.contains(name(item))) {
            let namespace = item["metadata"]["namespace"].as_str().unwrap_or_default();
            let is_system = ["system:", "kube-"]
                .iter()
                .any(|begin| name(item).starts_with(begin));
            if OWN.is_match(namespace) || is_system {
                continue;
            }
            if !OWN.is_match(name(item)) {
                foreign.push(format!("{} {}", kind.kind, name(item)));
            } else if is_old(item) && namespace.is_empty() {
                genuine
                    .remove(&format!("{path}/{}", name(item)), false)
                    .await?;
            }
        }
    }
    Ok(foreign)
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list["items"].as_array().into_iter().flatten()
}

fn name(item: &Value) -> &str {
    item["metadata"]["name"].as_str().unwrap_or_default()
}

fn is_old(item: &Value) -> bool {
    let made = item["metadata"]["creationTimestamp"].as_str();
    let made = made.and_then(|text| text.parse::<Timestamp>().ok());
    let now = Timestamp::try_from(clock::now()).ok();
    made.zip(now)
        .is_some_and(|(made, now)| now.duration_since(made) > OLD)
}
