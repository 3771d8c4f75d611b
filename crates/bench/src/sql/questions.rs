//! What is asked: as a query of the cache, and as what a program does with all pods in its hands.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use lariat_sql::{Query, field, label};

use crate::pods;

/// How many objects a page has.
pub(super) const PAGE: usize = 50;

/// How many pages lie before the one that is asked for by a cursor.
const DEPTH: usize = 1_000;

/// One question, asked about something else each turn.
pub(super) struct Question {
    pub(super) case: &'static str,
    /// Makes the query of a turn.
    pub(super) query: fn(usize) -> Query,
    /// How many objects the cursor passes over.
    pub(super) skip: usize,
    pub(super) naive: Naive,
}

/// How a program answers without the cache.
pub(super) enum Naive {
    /// Keeps what a turn asks for, sorts it, and takes a page of it.
    Sort {
        meets: fn(&Pod, usize) -> bool,
        key: fn(&Pod) -> String,
    },
    /// Counts by a value.
    Count(fn(&Pod) -> String),
    /// Counts what a turn asks for.
    Total(fn(&Pod, usize) -> bool),
}

/// Returns the questions for so many pods.
pub(super) fn all(pods: usize) -> impl Iterator<Item = Question> {
    pages(pods).into_iter().chain(counts())
}

fn pages(pods: usize) -> [Question; 4] {
    [
        Question {
            case: "page",
            query: |turn| {
                let on_node = field("spec.nodeName").equals(pods::node(turn));
                let sorted = Query::new().filter(on_node).sort(field("status.podIP"));
                sorted.page(1, PAGE as u64)
            },
            skip: 0,
            naive: Naive::Sort {
                meets: |pod, turn| node(pod) == pods::node(turn),
                key: ip,
            },
        },
        Question {
            case: "broad",
            query: |turn| {
                let backend = label("tier").equals("backend");
                let sorted = Query::new().filter(backend).sort(field("spec.nodeName"));
                sorted.page(1 + turn as u64 % 10, PAGE as u64)
            },
            skip: 0,
            naive: Naive::Sort {
                meets: |pod, _| label_of(pod, "tier") == "backend",
                key: |pod| node(pod).to_owned(),
            },
        },
        Question {
            case: "keyset",
            query: |_| Query::new().sort(field("metadata.name")),
            // Of few pods the half, so that a page follows.
            skip: (DEPTH * PAGE).min(pods / 2),
            naive: Naive::Sort {
                meets: |_, _| true,
                key: |pod| pod.metadata.name.clone().unwrap_or_default(),
            },
        },
        Question {
            case: "search",
            query: |turn| Query::new().search(&words(turn)).page(1, PAGE as u64),
            skip: 0,
            naive: Naive::Sort {
                meets: |pod, turn| has_words(pod, &words(turn)),
                key: |pod| pod.metadata.name.clone().unwrap_or_default(),
            },
        },
    ]
}

fn counts() -> [Question; 2] {
    [
        Question {
            case: "summary",
            query: |_| {
                let by_node = Query::new().summarize(field("spec.nodeName"));
                by_node.only_counts()
            },
            skip: 0,
            naive: Naive::Count(|pod| node(pod).to_owned()),
        },
        Question {
            case: "total",
            query: |turn| {
                let of_team = label("team").equals(pods::team(turn));
                Query::new().filter(of_team).only_counts()
            },
            skip: 0,
            naive: Naive::Total(|pod, turn| label_of(pod, "team") == pods::team(turn)),
        },
    ]
}

/// Returns words of an image's name: those of one pod in two hundred, about.
fn words(turn: usize) -> String {
    pods::words(turn).join(" ")
}

fn node(pod: &Pod) -> &str {
    let spec = pod.spec.as_ref();
    spec.and_then(|spec| spec.node_name.as_deref())
        .unwrap_or_default()
}

fn label_of<'a>(pod: &'a Pod, key: &str) -> &'a str {
    let labels = pod.metadata.labels.as_ref();
    labels
        .and_then(|labels| labels.get(key))
        .map_or("", String::as_str)
}

/// Returns the address, in an order in which texts are sorted as addresses are.
fn ip(pod: &Pod) -> String {
    let ip = pod
        .status
        .as_ref()
        .and_then(|status| status.pod_ip.as_deref());
    let parts = ip.unwrap_or_default().split('.');
    parts.map(|part| format!("{part:0>3}")).collect()
}

fn has_words(pod: &Pod, words: &str) -> bool {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let images: Vec<&str> = containers
        .filter_map(|container| container.image.as_deref())
        .collect();
    words
        .split(' ')
        .all(|word| images.iter().any(|image| image.contains(word)))
}

impl Question {
    /// Answers from all pods; returns how many objects or counts that were.
    pub(super) fn answer<P>(&self, pods: impl Iterator<Item = P>, turn: usize) -> usize
    where
        P: std::ops::Deref<Target = Pod>,
    {
        match &self.naive {
            Naive::Sort { meets, key } => {
                // The key is made once for each object, and not in each comparison.
                let mut kept: Vec<(String, P)> = pods
                    .filter(|pod| meets(pod, turn))
                    .map(|pod| (key(&pod), pod))
                    .collect();
                kept.sort_by(|(one, _), (other, _)| one.cmp(other));
                kept.into_iter().skip(self.skip).take(PAGE).count()
            }
            Naive::Count(by) => {
                let mut counts: BTreeMap<String, usize> = BTreeMap::new();
                for pod in pods {
                    *counts.entry(by(&pod)).or_default() += 1;
                }
                counts.len()
            }
            Naive::Total(meets) => pods.filter(|pod| meets(pod, turn)).count(),
        }
    }
}
