//! Users of cases: combinations of credentials.

use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::choose::{pick, set};
use super::stage::{Stage, base64};

/// Makes a user, and says whether kubectl refuses it because data and a file are both there.
pub(super) fn user(rng: &mut Rng, stage: &Stage) -> (Value, bool) {
    let mut members = Map::new();
    set(rng, &mut members, "token", 30, "tok-inline");
    let names = [
        (10, "token"),
        (3, "sub/token"),
        (2, "empty-token"),
        (2, "missing-token"),
    ];
    let file = pick(rng, names);
    set(rng, &mut members, "tokenFile", 25, file);
    set(rng, &mut members, "username", 8, "me");
    set(rng, &mut members, "password", 8, "pw-basic");
    let is_twice = certificate(rng, stage, &mut members);
    let exec = exec(rng);
    set(rng, &mut members, "exec", 25, exec);
    // A plugin is a mapping, which cannot be an empty text.
    members.retain(|name, value| name != "exec" || value != "");
    let is_there = |name: &&str| {
        let value = members.get(*name);
        value.is_some_and(|value| !value.is_null() && value != "")
    };
    let methods = [
        "token",
        "tokenFile",
        "username",
        "exec",
        "client-certificate",
        "client-certificate-data",
    ];
    // kubectl asks for a password if there is nothing.
    if !methods.iter().any(is_there) && rng.u32(..10) > 0 {
        members.insert("token".to_owned(), "tok-inline".into());
    }
    impersonation(rng, &mut members);
    (members.into(), is_twice)
}

/// Adds a client certificate and its key, or another key. Says whether data and a file are both there.
fn certificate(rng: &mut Rng, stage: &Stage, members: &mut Map<String, Value>) -> bool {
    let [ann, bob] = &stage.users;
    let data = base64(&ann.certificate);
    let is_data = set(rng, members, "client-certificate-data", 15, data);
    let file = pick(rng, [(10, "bob.crt"), (1, "missing.crt")]);
    let is_file = set(rng, members, "client-certificate", 15, file);
    let weight = if is_data || is_file { 400 } else { 3 };
    let (right, wrong) = if is_data { (ann, bob) } else { (bob, ann) };
    let key = pick(rng, [(10, right), (1, wrong)]);
    let is_key = set(rng, members, "client-key-data", weight, base64(&key.key));
    let weight = if is_key { 3 } else { weight };
    let file = if is_data { "ann.key" } else { "bob.key" };
    let is_key_file = set(rng, members, "client-key", weight, file);
    is_data && is_file || is_key && is_key_file
}

fn impersonation(rng: &mut Rng, members: &mut Map<String, Value>) {
    let is_set = set(rng, members, "as", 10, "carol");
    if is_set {
        let groups = [(1, json!(["g1", "g2"])), (1, json!([])), (1, json!(null))];
        members.insert("as-groups".to_owned(), pick(rng, groups));
        let extra = [(1, json!({"scope": ["a", "b"]})), (2, json!(null))];
        members.insert("as-user-extra".to_owned(), pick(rng, extra));
    }
    set(rng, members, "as-uid", if is_set { 20 } else { 2 }, "7");
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
