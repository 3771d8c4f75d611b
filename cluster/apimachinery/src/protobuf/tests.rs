use proptest::prelude::*;
use serde_json::{Value, json};

use super::error::DEPTH;
use super::maker::make;
use super::wire::PREFIX;
use super::writer::Writer;
use super::*;

fn read(body: &[u8]) -> Result<Value, ProtobufError> {
    Envelope::open(body)?.object().map(Value::Object)
}

fn body(object: &Value) -> Vec<u8> {
    let object = object.as_object().expect("it is an object");
    encode(object).expect("the kind is a built-in one")
}

fn bytes(number: u32, payload: &[u8]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.payload(number, payload);
    writer.into_bytes()
}

fn check(body: &[u8], expected: &Value) {
    let object = read(body).expect("the body is readable");
    assert_eq!(object, *expected, "{object:#}");
}

fn refused(body: &[u8], expected: &str) {
    let error = read(body).expect_err("the body is unreadable").to_string();
    assert_eq!(error, expected, "{body:?}");
}

/// The body of `kubectl create deployment d --image=nginx --port=80 --namespace=n`.
#[test]
fn what_kubectl_sends_is_what_it_means() {
    let sent = b"k8s\0\n\x15\n\x07apps/v1\x12\nDeployment\x12\xb1\x01\n\x1c\n\x01d\x12\0\x1a\x01n\"\0*\0\
        2\x008\0B\0Z\x08\n\x03app\x12\x01d\x12\x82\x01\x08\x01\x12\n\n\x08\n\x03app\x12\x01d\x1aj\n\x1a\
        \n\0\x12\0\x1a\0\"\0*\x002\x008\0B\0Z\x08\n\x03app\x12\x01d\x12L\x12.\n\x05nginx\x12\x05nginx*\0\
        2\n\n\0\x10\0\x18P\"\0*\0B\0j\0r\0\x80\x01\0\x88\x01\0\x90\x01\0\xa2\x01\0\x1a\x002\0B\0J\0R\0X\0`\0\
        h\0\x82\x01\0\x8a\x01\0\x9a\x01\0\xc2\x01\0\"\x02\n\0(\x008\0\x1a\x0c\x08\0\x10\0\x18\0 \0(\x008\0\
        \x1a\0\"\0";
    let labels = json!({"app": "d"});
    let meant = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "d", "namespace": "n", "labels": labels},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": labels}, "strategy": {},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{
                    "name": "nginx", "image": "nginx", "ports": [{"containerPort": 80}], "resources": {},
                }]},
            },
        },
        "status": {},
    });
    check(sent, &meant);
}

#[test]
fn zeros_count_where_they_differ_from_absent_values() {
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "", "generation": 0, "labels": {"": ""}, "deletionGracePeriodSeconds": 0},
        "spec": {
            "replicas": 0, "paused": false, "minReadySeconds": 0,
            "selector": {}, "strategy": {},
            "template": {"spec": {
                "hostNetwork": false, "automountServiceAccountToken": false, "nodeName": "",
                "containers": [{"name": "", "image": "", "args": [""], "resources": {}}],
            }},
        },
    });
    let kept = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"labels": {"": ""}, "deletionGracePeriodSeconds": 0},
        "spec": {
            "replicas": 0, "selector": {}, "strategy": {},
            "template": {"spec": {
                "automountServiceAccountToken": false,
                "containers": [{"name": "", "args": [""], "resources": {}}],
            }},
        },
    });
    check(&body(&object), &kept);
}

#[test]
fn what_is_unknown_is_skipped() {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "spec": {"finalizers": ["a"]}});
    let mut unknown = body(&namespace);
    // Content types, and a field of another version, behind the object.
    unknown.extend([bytes(3, b"gzip"), bytes(4, b"x"), bytes(99, b"y")].concat());
    check(&unknown, &namespace);
}

#[test]
fn parts_of_a_message_add_up() {
    let part = |spec: &[u8]| bytes(2, spec);
    let finalizers = [part(&bytes(1, b"a")), part(&bytes(1, b"b"))].concat();
    let type_meta = [bytes(1, b"v1"), bytes(2, b"Namespace")].concat();
    let whole = [PREFIX, &bytes(1, &type_meta), &bytes(2, &finalizers)].concat();
    check(
        &whole,
        &json!({"apiVersion": "v1", "kind": "Namespace", "spec": {"finalizers": ["a", "b"]}}),
    );
}

#[test]
fn options_belong_to_every_group() {
    let type_meta = [bytes(1, b"apps/v1"), bytes(2, b"DeleteOptions")].concat();
    let uid = bytes(2, &bytes(1, b"u"));
    let options = [
        &[0x08, 0][..],
        &uid,
        &bytes(4, b"Orphan"),
        &bytes(5, b"All"),
    ]
    .concat();
    let whole = [PREFIX, &bytes(1, &type_meta), &bytes(2, &options)].concat();
    check(
        &whole,
        &json!({
            "apiVersion": "apps/v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
            "preconditions": {"uid": "u"}, "propagationPolicy": "Orphan", "dryRun": ["All"],
        }),
    );
}

#[test]
fn raw_values_are_json_or_in_an_envelope() {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace"});
    let type_meta = [bytes(1, b"apps/v1"), bytes(2, b"ControllerRevision")].concat();
    let revision = |raw: &[u8]| {
        let data = bytes(2, &bytes(1, raw));
        [PREFIX, &bytes(1, &type_meta), &bytes(2, &data)].concat()
    };
    let expected =
        |data: &Value| json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "data": data});
    check(&revision(br#"{"a": 1}"#), &expected(&json!({"a": 1})));
    check(&revision(&body(&namespace)), &expected(&namespace));
    let error = read(&revision(b"{"))
        .expect_err("it is no JSON")
        .to_string();
    assert!(error.starts_with("a raw value is not JSON"), "{error}");
    let mut nested = body(&namespace);
    for _ in 0..DEPTH {
        nested = revision(&nested);
    }
    refused(&nested, "proto: messages are nested deeper than 100");
}

#[test]
fn what_is_no_message_of_the_kind_is_refused() {
    let prefix =
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
    refused(b"", prefix);
    refused(b"{}", prefix);
    let whole = |kind: &[u8], raw: &[u8]| {
        let type_meta = [bytes(1, b"v1"), bytes(2, kind)].concat();
        [PREFIX, &bytes(1, &type_meta), &bytes(2, raw)].concat()
    };
    refused(
        &whole(b"Nonsense", b""),
        r#"no kind "Nonsense" is registered for version "v1""#,
    );
    refused(
        &whole(b"Namespace", &[0x08, 1]),
        "proto: wrong wireType = 0 for field metadata",
    );
    refused(&whole(b"Namespace", &[0x0a, 9]), "unexpected EOF");
    refused(&[PREFIX, &[0x0a]].concat(), "unexpected EOF");
}

#[test]
fn every_kind_is_the_same_when_it_was_written_and_read() {
    for (api_version, kind) in crate::schema::kinds() {
        for seed in 0..8 {
            let object = make(api_version, kind, seed);
            check(&body(&object), &object);
        }
    }
}

proptest! {
    #[test]
    fn pods_and_deployments_are_the_same_when_they_were_written_and_read(seed: u64) {
        for (api_version, kind) in [("v1", "Pod"), ("apps/v1", "Deployment")] {
            let object = make(api_version, kind, seed);
            check(&body(&object), &object);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(raw: Vec<u8>, kind in "Pod|Deployment|CustomResourceDefinition") {
        let _ = read(&raw);
        let _ = read(&[PREFIX, &raw].concat());
        let group = match kind.as_str() {
            "Pod" => "v1",
            "Deployment" => "apps/v1",
            _ => "apiextensions.k8s.io/v1",
        };
        let type_meta = [bytes(1, group.as_bytes()), bytes(2, kind.as_bytes())].concat();
        let _ = read(&[PREFIX, &bytes(1, &type_meta), &bytes(2, &raw)].concat());
    }

    #[test]
    fn no_damage_makes_it_panic(seed: u64, damage: Vec<(prop::sample::Index, u8)>, cut: prop::sample::Index) {
        let mut damaged = body(&make("v1", "Pod", seed));
        for (at, byte) in damage {
            let at = at.index(damaged.len());
            damaged[at] = byte;
        }
        let _ = read(&damaged);
        let _ = read(&damaged[..cut.index(damaged.len())]);
    }
}
