//! Sequences of requests, and what a genuine API server answered.
//!
//! In `answers.txt`, a line `= name` begins a sequence on a cluster of its own. A line that is not indented is a
//! request: method, path, then `table` if a table is asked for, and a body, before which `merge`, `strategic`, `json`
//! or `apply` says which patch it is. Indented lines check the answer: a status code, a JSON pointer with its value
//! (`null` if absent), `!` with the Status message, `?` with the fields of the causes, `warning` with a part of a
//! warning, or `unwarned`. After a write of a CRD the next request waits until it has taken effect.

use std::collections::BTreeSet;
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::Value;

use crate::bench::{Answer, Bench, DEFINITIONS};

#[tokio::test(start_paused = true)]
async fn answers_are_those_of_a_genuine_server() {
    for sequence in include_str!("answers.txt").split("\n= ").skip(1) {
        let (name, steps) = sequence.split_once('\n').expect("steps");
        let bench = Bench::new().await;
        let mut answer = None;
        for line in steps.lines().filter(|line| !line.is_empty()) {
            match line.strip_prefix(' ') {
                None => answer = Some(request(&bench, line).await),
                Some(part) => {
                    let answer = answer.as_ref().expect("a request before its answer");
                    check(name, answer, part);
                }
            }
        }
    }
}

async fn request(bench: &Bench, line: &str) -> Answer {
    let mut words = line.splitn(3, ' ');
    let method: Method = words.next().and_then(|word| word.parse().ok()).expect(line);
    let path = words.next().expect("a path");
    let rest = words.next().unwrap_or_default();
    let (rest, accept) = match rest.strip_prefix("table") {
        Some(rest) => (
            rest.trim_start(),
            "application/json;as=Table;v=v1;g=meta.k8s.io",
        ),
        None => (rest, "application/json"),
    };
    let meant = |word: &str, media: &'static str| Some((rest.strip_prefix(word)?, media));
    let (body, media) = meant("merge ", "application/merge-patch+json")
        .or_else(|| meant("strategic ", "application/strategic-merge-patch+json"))
        .or_else(|| meant("json ", "application/json-patch+json"))
        .or_else(|| meant("apply ", "application/apply-patch+yaml"))
        .unwrap_or((rest, "application/json"));
    let headers = [("content-type", media), ("accept", accept)];
    let answer = bench.ask(method, path, &headers, body.to_owned()).await;
    if path.starts_with(DEFINITIONS) && answer.code == StatusCode::OK {
        // A changed schema counts a little later. Time is paused, so this lasts until the server is idle.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    if path == DEFINITIONS && answer.code == StatusCode::CREATED {
        // Its kind is served a little later, on a genuine server too.
        let name = answer.json()["metadata"]["name"].clone();
        bench.wait_established(name.as_str().expect("a name")).await;
    }
    answer
}

fn check(name: &str, answer: &Answer, part: &str) {
    let place = format!("{name}: {part}: {}", answer.text);
    match part.split_once(' ') {
        None if part == "unwarned" => {
            assert!(!answer.headers.contains_key("warning"), "{place}");
        }
        None => assert_eq!(answer.code.as_str(), part, "{place}"),
        Some(("!", message)) => assert_eq!(answer.json()["message"], message, "{place}"),
        Some(("?", wanted)) => {
            let causes = answer.json()["details"]["causes"].clone();
            let causes = causes.as_array().cloned().unwrap_or_default();
            let fields = causes.iter().filter_map(|cause| cause["field"].as_str());
            let fields: BTreeSet<&str> = fields.collect();
            assert_eq!(fields, wanted.split(' ').collect(), "{place}");
        }
        Some(("warning", text)) => {
            let warnings = answer.headers.get_all("warning");
            let mut warnings = warnings.iter().filter_map(|each| each.to_str().ok());
            assert!(warnings.any(|each| each.contains(text)), "{place}");
        }
        Some((pointer, value)) => {
            let value: Value = serde_json::from_str(value).expect(value);
            let found = answer.json().pointer(pointer).cloned();
            assert_eq!(found.unwrap_or_default(), value, "{place}");
        }
    }
}
