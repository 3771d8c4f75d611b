//! Continue tokens, against a list that is read whole.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};

use crate::cluster::{Answer, Tested, with_cluster};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const EVERYWHERE: &str = "/api/v1/configmaps";

/// The first byte chooses the collection and what the rest is: the token, the JSON in it, or only a key.
pub(crate) fn run(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else {
        return;
    };
    let path = if choice & 1 == 0 {
        CONFIG_MAPS
    } else {
        EVERYWHERE
    };
    let token = match (choice >> 1) % 3 {
        0 => rest.to_vec(),
        1 => BASE64.encode(rest).into_bytes(),
        _ => {
            let start = String::from_utf8_lossy(rest);
            let token = json!({"v": "meta.k8s.io/v1", "rv": -1, "start": start});
            BASE64.encode(token.to_string()).into_bytes()
        }
    };
    with_cluster(|tested| check(tested, path, &token));
}

fn check(tested: &Tested, path: &str, token: &[u8]) {
    // Every byte is escaped, so that the whole of it is the token.
    let escaped: String = token.iter().map(|byte| format!("%{byte:02X}")).collect();
    let answer = tested.get(&format!("{path}?limit=3&continue={escaped}"));
    if answer.code != 200 {
        let is_refused = matches!(answer.code, 400 | 410);
        assert!(is_refused, "{}", answer.body);
        if let Some(rest) = next(&answer) {
            assert_eq!(answer.code, 410);
            let answer = tested.get(&format!("{path}?limit=3&continue={rest}"));
            assert_eq!(answer.code, 200, "the rest can be had: {}", answer.body);
        }
        return;
    }
    // The state a list goes on in is that of its first page, which may have been another one.
    let version = answer.body["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default();
    let state = format!("resourceVersion={version}&resourceVersionMatch=Exact");
    let whole = tested.get(&format!("{path}?{state}"));
    assert_eq!(whole.code, 200, "{}", whole.body);
    let whole = keys(&whole);
    let mut rest = keys(&answer);
    let mut token = next(&answer).map(str::to_owned);
    while let Some(next_token) = token {
        let answer = tested.get(&format!("{path}?limit=3&continue={next_token}"));
        assert_eq!(answer.code, 200, "{}", answer.body);
        let page = keys(&answer);
        assert!(!page.is_empty(), "a page that was announced is not empty");
        rest.extend(page);
        token = next(&answer).map(str::to_owned);
    }
    assert!(whole.ends_with(&rest), "{rest:?} is no end of {whole:?}");
}

fn next(answer: &Answer) -> Option<&str> {
    let token = answer.body["metadata"]["continue"].as_str();
    token.filter(|token| !token.is_empty())
}

fn keys(answer: &Answer) -> Vec<String> {
    let items = answer.body["items"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let key = |item: &Value| {
        format!(
            "{}/{}",
            item["metadata"]["namespace"], item["metadata"]["name"]
        )
    };
    items.iter().map(key).collect()
}
