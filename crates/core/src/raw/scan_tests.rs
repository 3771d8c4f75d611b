//! The fast path, compared with a parser of the whole text.

use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

use super::*;
use crate::JsonCursor;
use crate::{Gvk, ObjectKey};

fn pod() -> Gvk {
    Gvk::new("", "v1", "Pod")
}

/// The parser that is used where the fast path does not understand a text.
fn model(json: &[u8]) -> Option<Scan<'_>> {
    Scan::whole(json, &pod()).ok()
}

fn scan(json: &[u8]) -> Option<Scan<'_>> {
    Scan::new(json, &pod()).ok()
}

fn read(json: &str) -> Result<RawObject, RawObjectError> {
    let scan = Scan::new(json.as_bytes(), &pod())?;
    scan.into_object(&pod(), &mut Interner::new(), ManagedFields::Cut)
}

/// Returns an object up to the end of its metadata, if the fast path read it.
fn head_of(scan: &Scan<'_>) -> Option<Vec<u8>> {
    let metadata = scan.parts?.metadata;
    let start = metadata.as_ptr() as usize - scan.json.as_ptr() as usize;
    let mut head = scan.json[..start + metadata.len()].to_vec();
    head.push(b'}');
    Some(head)
}

fn white() -> impl Strategy<Value = String> {
    prop_oneof![4 => Just(String::new()), 1 => "[ \t\r\n]{0,2}"]
}

/// What is between the quotes of a string.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => "[ !#-\\[\\]-~é✓\u{7f}]{1,12}",
        2 => prop::sample::select(vec![r#"\""#, r"\\", r"\/", r"\n", r"\u00e9", r"\ud83d\ude00"])
            .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.concat())
}

fn string() -> impl Strategy<Value = String> {
    text().prop_map(|text| format!(r#""{text}""#))
}

fn number() -> impl Strategy<Value = String> {
    r"-?(0|[1-9][0-9]{0,19})(\.[0-9]{1,3})?([eE][+-]?[0-9]{1,3})?"
}

/// Any JSON text.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        prop::sample::select(vec!["null", "true", "false", "{}", "[]", "-0"])
            .prop_map(str::to_owned),
        number(),
        string(),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let items = prop::collection::vec((white(), inner.clone(), white()), 0..4);
        let list = items.prop_map(|items| {
            let padded = items.into_iter().map(|(a, item, b)| a + &item + &b);
            format!("[{}]", padded.collect::<Vec<_>>().join(","))
        });
        let member = (string(), inner);
        prop_oneof![list, object_of(member.boxed(), 0..4)]
    })
}

/// An object of some members, in any order, with white space wherever it may be.
fn object_of(
    member: BoxedStrategy<(String, String)>,
    count: std::ops::Range<usize>,
) -> impl Strategy<Value = String> {
    let padded = (member, prop::collection::vec(white(), 4));
    prop::collection::vec(padded, count).prop_map(|members| {
        let members = members.into_iter().map(|((name, value), white)| {
            format!(
                "{}{name}{}:{}{value}{}",
                white[0], white[1], white[2], white[3]
            )
        });
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    })
}

fn named(names: &[&str]) -> impl Strategy<Value = String> + use<> {
    let names: Vec<String> = names.iter().map(|name| format!(r#""{name}""#)).collect();
    prop::sample::select(names)
}

/// The metadata of an object, or something else in their place.
fn metadata() -> impl Strategy<Value = String> {
    let texts = [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "deletionTimestamp",
        "selfLink",
    ];
    let others = [
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "managedFields",
        r"n\u0061me",
    ];
    let plain = "[a-z0-9.-]{1,12}".prop_map(|text| format!(r#""{text}""#));
    let member = prop_oneof![
        6 => (named(&texts), prop_oneof![6 => plain.clone(), 1 => string(), 1 => Just("null".to_owned())]),
        2 => (named(&others), prop_oneof![1 => Just("null".to_owned()), 3 => json()]),
        1 => (Just(r#""generation""#.to_owned()), number()),
        1 => (named(&texts), json()),
    ];
    let named_first = (plain, object_of(member.boxed(), 0..6)).prop_map(|(name, rest)| {
        let comma = if rest.trim_matches(['{', '}', ' ']).is_empty() {
            ""
        } else {
            ","
        };
        format!(r#"{{"name":{name}{comma}{}"#, &rest[1..])
    });
    prop_oneof![8 => named_first, 1 => json()]
}

/// An object with its members in any order, some of them repeated or of odd forms.
fn object() -> impl Strategy<Value = String> {
    let types = prop_oneof![
        4 => prop::sample::select(vec![r#""v1""#, r#""Pod""#, r#""PartialObjectMetadata""#, "null"])
            .prop_map(str::to_owned),
        1 => json(),
    ];
    let names = [
        "spec",
        "status",
        "data",
        "metad\\u0061ta",
        "k\\u0069nd",
        "metadata",
        "kind",
        "x",
    ];
    let member = prop_oneof![
        3 => (named(&["apiVersion", "kind"]), types),
        3 => (Just(r#""metadata""#.to_owned()), metadata()),
        4 => (named(&names), json()),
    ];
    let any = object_of(member.boxed(), 0..6);
    // The usual form, which the fast path reads.
    let content = object_of((named(&names[..3]), json()).boxed(), 0..3);
    let usual = (metadata(), content).prop_map(|(metadata, content)| {
        let comma = if content.trim_matches(['{', '}', ' ']).is_empty() {
            ""
        } else {
            ","
        };
        let rest = &content[1..];
        format!(r#"{{"kind":"Pod","apiVersion":"v1","metadata":{metadata}{comma}{rest}"#)
    });
    prop_oneof![any, usual]
}

/// A text with some of its bytes replaced, taken out, or cut off.
///
/// It is UTF-8 as lines and pages are.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop::sample::select(b"\"\\{}[],: \x01a0n-u".to_vec());
    let damage = (
        any::<prop::sample::Index>(),
        any::<bool>(),
        prop::option::of(byte),
    );
    (object(), prop::collection::vec(damage, 1..4)).prop_map(|(json, damage)| {
        let mut json = json.replace(['\t', '\r', '\n'], " ").into_bytes();
        for (index, is_in_structure, byte) in damage {
            let counts = |byte: u8| !is_in_structure || b"\"\\{}[],:".contains(&byte);
            let places: Vec<usize> = (0..json.len()).filter(|at| counts(json[*at])).collect();
            if places.is_empty() {
                break;
            }
            let at = places[index.index(places.len())];
            match byte {
                Some(byte) => json[at] = byte,
                None => drop(json.remove(at)),
            }
        }
        String::from_utf8_lossy(&json).into_owned().into_bytes()
    })
}

fn found<'a>(scan: &'a Scan<'_>) -> (&'a borrowed::Metadata<'a>, scan::MissingType, bool) {
    (&scan.metadata, scan.missing, scan.partial)
}

/// Returns the parts of an object as a text.
fn made(scan: Scan<'_>) -> Result<String, RawObjectError> {
    let object = scan.into_object(&pod(), &mut Interner::new(), ManagedFields::Cut)?;
    let (metadata, json) = object.into_parts();
    let (labels, owners) = (&metadata.labels, &metadata.owners);
    let (deleting, finalizers) = (metadata.deleting, &metadata.finalizers);
    let json = String::from_utf8_lossy(&json);
    Ok(format!(
        "{metadata:?} {labels:?} {owners:?} {finalizers:?} {deleting} {json}"
    ))
}

/// Returns a value; of repeated members the last one counts.
fn value(json: &[u8]) -> Option<Value> {
    serde_json::from_slice(json).ok()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn an_object_is_read_as_a_parser_reads_it(json in object()) {
        let json = json.as_bytes();
        match (scan(json), model(json)) {
            (Some(quick), Some(model)) => {
                prop_assert_eq!(found(&quick), found(&model));
                prop_assert_eq!(made(quick), made(model));
            }
            (None, None) => {}
            (None, Some(_)) => prop_assert!(false, "it is refused"),
            // Nothing is overlooked but a type that is repeated.
            (Some(quick), None) => {
                let head = head_of(&quick).expect("the parser refuses the rest");
                prop_assert!(json.len() > head.len());
                let model = model(&head).expect("what was looked at is an object");
                prop_assert_eq!(found(&quick), found(&model));
                let text = String::from_utf8_lossy(&json[head.len()..]).into_owned();
                prop_assert!(text.contains(r#""kind""#) || text.contains(r#""apiVersion""#));
            }
        }
    }

    #[test]
    fn of_damaged_text_nothing_is_accepted_but_metadata_that_are_whole(json in damaged()) {
        let Some(quick) = scan(&json) else {
            prop_assert!(model(&json).is_none(), "it is refused");
            return Ok(());
        };
        let head = head_of(&quick);
        let whole = head.as_deref().unwrap_or(&json);
        let model = model(whole).expect("what was looked at is an object");
        prop_assert_eq!(found(&quick), found(&model));
        let key = ObjectKey::namespaced(quick.namespace(), quick.name());
        if let Some(known) = RawObject::key_of(&json) {
            prop_assert_eq!(known, key);
        }
    }

    #[test]
    fn metadata_alone_are_those_of_the_object(json in object(), keep in any::<bool>()) {
        let managed = if keep { ManagedFields::Keep } else { ManagedFields::Cut };
        let mut interner = Interner::new();
        // One with a repeated type has two meanings.
        let Some(whole) = model(json.as_bytes())
            .and_then(|_| scan(json.as_bytes()))
            .and_then(|scan| scan.into_object(&pod(), &mut interner, managed).ok())
        else {
            return Ok(());
        };
        let scan = scan(json.as_bytes()).expect("it was read before");
        let partial = scan.into_metadata(&pod(), &mut interner, managed);
        let Some(mut expected) = value(whole.json()) else {
            // A number is out of range.
            return Ok(());
        };
        let partial = partial.expect("the whole was made of it");
        prop_assert_eq!(partial.key(), whole.key());
        if let Some(copied) = RawObject::metadata_of(whole.json()) {
            prop_assert_eq!(value(&copied), value(partial.json()));
        }
        let members = expected.as_object_mut().expect("it is an object");
        members.retain(|name, _| matches!(&**name, "apiVersion" | "kind" | "metadata"));
        if !json.contains("\\u") {
            prop_assert_eq!(value(partial.json()), Some(expected));
        }
    }

    #[test]
    fn an_object_inside_of_a_text_is_read_as_if_it_stood_alone(json in object(), rest in "[,\\] ]{0,2}") {
        let text = format!(" {json}{rest}");
        let mut cursor = JsonCursor::new(text.as_bytes());
        let Ok(within) = Scan::next(&mut cursor) else {
            return Ok(());
        };
        prop_assert_eq!(within.json(), json.as_bytes());
        prop_assert_eq!(cursor.position(), json.len() + 1);
        let alone = scan(json.as_bytes()).expect("it was read");
        prop_assert_eq!(found(&within), found(&alone));
    }

    #[test]
    fn a_cursor_passes_what_a_parser_passes(json in json(), rest in "[,}\\] ]{0,2}") {
        let text = format!("{json}{rest}");
        let mut cursor = JsonCursor::new(text.as_bytes());
        // The text may begin or end with a number.
        prop_assert_eq!(cursor.skip_value(), Ok(json.as_bytes()));
        prop_assert_eq!(cursor.position(), json.len());
    }

    #[test]
    fn a_cursor_passes_no_damaged_text(json in damaged()) {
        let mut cursor = JsonCursor::new(&json);
        let passes = cursor.skip_value().is_ok() && cursor.end().is_ok();
        let is_json = serde_json::from_slice::<&RawValue>(&json).is_ok();
        let has_control_characters = json.iter().any(|byte| *byte < b' ');
        prop_assert!(passes == is_json || (passes && has_control_characters));
    }

    #[test]
    fn a_cursor_survives_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = JsonCursor::new(&bytes).skip_value();
        let _ = Scan::new(&bytes, &pod());
    }
}

const USUAL: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n"}"#;

#[test]
fn what_follows_the_metadata_is_left_to_decoders() {
    for rest in [
        r#","spec":{"a":}}"#,
        r#","spec":[}"#,
        r#","spec":{"a":"b}"#,
        r#","status":{}},"x":{}}"#,
        r#","kind":"Other"}"#,
    ] {
        let json = format!("{USUAL}{rest}");
        let object = read(&json).unwrap();
        assert_eq!(object.key().as_str(), "n/a", "{rest}");
        assert_eq!(object.json(), json.as_bytes(), "{rest}");
        assert!(model(json.as_bytes()).is_none(), "{rest}");
    }
}

#[test]
fn an_end_that_is_missing_is_noticed() {
    for rest in ["", ",", r#","spec":{"#, r#","spec":1"#, r#"}}"#, r#"}{}"#] {
        let json = format!("{USUAL}{rest}");
        assert!(read(&json).is_err(), "{rest}");
    }
}

#[test]
fn a_second_name_is_refused_wherever_it_is() {
    for rest in [
        r#","metadata":{"name":"b"}}"#,
        r#","spec":{},"metadata":{"name":"b"}}"#,
        r#","spec":{"template":{"metadata":{}}},"metadata":{"name":"b"}}"#,
        r#","spec":{},"metad\u0061ta":{"name":"b"}}"#,
    ] {
        let json = format!("{USUAL}{rest}");
        let error = read(&json).unwrap_err();
        assert!(error.to_string().contains("duplicate field"), "{error}");
    }
    let twice = r#"{"metadata":{"name":"a","name":"b"}}"#;
    assert!(read(twice).is_err());
}

#[test]
fn a_type_behind_the_metadata_is_found() {
    let json = r#"{"metadata":{"name":"a"},"spec":{"kind":1},"kind":"PartialObjectMetadata","apiVersion":"v1"}"#;
    let scan = scan(json.as_bytes()).unwrap();
    assert!(scan.is_partial());
    let object = scan.into_object(&pod(), &mut Interner::new(), ManagedFields::Cut);
    assert_eq!(object.unwrap().json(), json.as_bytes());
}

/// Type and metadata first, then any content: the form that costs least.
#[test]
fn usual_objects_are_not_parsed() {
    for rest in [
        "}",
        " } ",
        r#","spec":{"a":[1,{"b":"c"}]},"status":{}}"#,
        r#","spec":{"template":{"metadata":{"name":"b"}}}}"#,
        r#","data":{"a":"\u003cb\u003e","kind":"c"}}"#,
    ] {
        let json = format!("{USUAL}{rest}");
        assert!(scan(json.as_bytes()).unwrap().parts.is_some(), "{rest}");
        assert!(
            Scan::next(&mut JsonCursor::new(json.as_bytes())).is_ok(),
            "{rest}"
        );
        let without_type = json.replace(r#""kind":"Pod","apiVersion":"v1","#, "");
        assert!(
            scan(without_type.as_bytes()).unwrap().parts.is_some(),
            "{rest}"
        );
    }
}

#[test]
fn objects_with_one_text_share_what_was_read_of_it() {
    let mut interner = Interner::new();
    let mut read = |name: &str, labels: &str| {
        let json = format!(
            r#"{{"metadata":{{"name":"{name}","labels":{labels},"finalizers":["f"],
                "ownerReferences":[{{"name":"o","uid":"u"}}]}}}}"#
        );
        let scan = Scan::new(json.as_bytes(), &pod()).unwrap();
        let object = scan.into_object(&pod(), &mut interner, ManagedFields::Cut);
        object.unwrap().metadata
    };
    let (a, b) = (read("a", r#"{"x":"1"}"#), read("b", r#"{"x":"1"}"#));
    assert!(a.labels.is_shared_with(&b.labels));
    assert!(std::sync::Arc::ptr_eq(&a.owners, &b.owners));
    assert!(std::sync::Arc::ptr_eq(&a.finalizers, &b.finalizers));
    let spaced = read("c", r#"{ "x" : "1" }"#);
    assert!(a.labels.is_shared_with(&spaced.labels), "they are equal");
}

#[test]
fn an_object_takes_a_given_key_only_if_it_is_its_own() {
    let json = br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n"}}"#;
    let own = ObjectKey::namespaced("n", "a");
    for (known, is_shared) in [
        (Some(own.clone()), true),
        (Some(ObjectKey::namespaced("n", "b")), false),
        (Some(ObjectKey::namespaced("m", "a")), false),
        (Some(ObjectKey::cluster("a")), false),
        (None, false),
    ] {
        let scan = Scan::new(json, &pod()).unwrap().with_key(known);
        let object = scan
            .into_object(&pod(), &mut Interner::new(), ManagedFields::Cut)
            .unwrap();
        assert_eq!(*object.key(), own);
        let text = |key: &ObjectKey| key.as_str().as_ptr();
        assert_eq!(text(object.key()) == text(&own), is_shared);
    }
}
