//! What paths lead to, and their bounds.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::JsonPath;
use super::parse::{DEEPEST, MOST_SEGMENTS};
use super::search::Search;

fn check(path: &str, expected: &[Value]) {
    let object = json!({
        "spec": {"x": 1, "a.b": "dotted", "list": [10, 20, 30], "map": {"k": {"v": 7}}},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "n": 1},
            {"type": "Synced", "status": "False", "n": 2},
        ]},
    });
    let path = JsonPath::parse(path).unwrap();
    let found = Search::new().find(&path.segments, vec![&object]);
    let found: Vec<Value> = found.into_iter().flatten().cloned().collect();
    assert_eq!(found, expected, "{path:?}");
    assert_eq!(path.first(&object), expected.first(), "{path:?}");
}

#[test]
fn paths_lead_where_the_client_library_leads() {
    check(".spec.x", &[json!(1)]);
    check("{.spec.x}", &[json!(1)]);
    check("$.spec.x", &[json!(1)]);
    check(".spec['a.b']", &[]);
    check(r".spec['a\.b']", &[json!("dotted")]);
    check(".spec['x','missing','map']['x','k']['v']", &[json!(7)]);
    check(r".spec.a\.b", &[json!("dotted")]);
    check(".spec.list[0]", &[json!(10)]);
    check(".spec.list[-1]", &[json!(30)]);
    check(".spec.list[9]", &[]);
    check(".spec.list[*]", &[json!(10), json!(20), json!(30)]);
    check(".spec.list[1:]", &[json!(20), json!(30)]);
    check(".spec.list[0:3:2]", &[json!(10), json!(30)]);
    check(".spec.list[1:1]", &[]);
    check(".spec.list[0,2]", &[json!(10), json!(30)]);
    check("..v", &[json!(7)]);
    check(".spec.missing.deeper", &[]);
    check(
        r#".status.conditions[?(@.type=="Ready")].status"#,
        &[json!("True")],
    );
    check(
        ".status.conditions[?(@.type!='Ready')].status",
        &[json!("False")],
    );
    check(".status.conditions[?(@.n>1)].type", &[json!("Synced")]);
    check(".status.conditions[?(@.none)].type", &[]);
    check(".status.conditions.*.n", &[json!(1), json!(2)]);
}

#[test]
fn a_step_that_fails_for_one_value_fails_for_all() {
    let object = json!({
        "list": ["a", "b"], "map": {"a": "b"}, "nothing": null,
        "items": [{"k": "a", "n": 1}, {"k": "b", "n": 2.5, "deep": [1]}, {"k": null}],
    });
    let check = |path: &str, expected: Value| {
        let path = JsonPath::parse(path).unwrap();
        let found = path.first(&object).cloned();
        assert_eq!(found.unwrap_or(json!("none")), expected, "{path:?}");
    };
    check(".list[0:9]", json!("none"));
    check(".list[0,9]", json!("none"));
    check(".list[-2:]", json!("a"));
    check(".list[-9]", json!("none"));
    check(".map[*]", json!("none"));
    check(".map.*", json!("b"));
    check(".nothing", Value::Null);
    check(".nothing[0]", json!("none"));
    check("..[0]", json!("none"));
    check(".map[?(@.a)]", json!("none"));
    check(r#".items[?(@.k=="a")].n"#, json!("none"));
    check(".items[?(@.n>0)].k", json!("none"));
    check(".items[0:2][?(@.n>0)].k", json!("none"));
    check(".items[?(@.missing==1)].k", json!("none"));
    // Go counts what it had before it failed.
    check(".items[?(@.deep[5])].k", json!("b"));
    check(".items[?(@.k[0])].k", json!("a"));
}

#[test]
fn paths_that_cannot_be_read_are_errors() {
    for path in [".a[", ".a[x]", ".a[?(@.b==)]", ".a[1:2:3:4]", ".a b"] {
        assert!(JsonPath::parse(path).is_err(), "{path}");
    }
}

#[test]
fn a_path_is_bounded_in_depth_and_steps() {
    let nested = |levels: usize| format!(".a{}@.b{}", "[?(@".repeat(levels), ")]".repeat(levels));
    assert!(JsonPath::parse(&nested(DEEPEST)).is_ok());
    let error = JsonPath::parse(&nested(DEEPEST + 1)).unwrap_err();
    assert_eq!(error.to_string(), "filters nest deeper than 32 levels");
    assert!(JsonPath::parse(&nested(100_000)).is_err());
    // A quote in a name opens no text, and hides no bracket.
    assert!(JsonPath::parse(&format!(".a'{}", &nested(100_000)[2..])).is_err());
    // Filters side by side do not nest.
    assert!(JsonPath::parse(&".a[?(@.b)]".repeat(DEEPEST + 1)).is_ok());
    assert!(JsonPath::parse(&".a".repeat(MOST_SEGMENTS)).is_ok());
    for path in [".a", "..", "[0,0]", "[?(@.a)]"] {
        let error = JsonPath::parse(&path.repeat(MOST_SEGMENTS + 1)).unwrap_err();
        assert_eq!(error.to_string(), "more than 256 steps", "{path}");
    }
}

#[test]
fn a_search_that_multiplies_gives_up() {
    let object = json!({"a": (0..40).fold(json!(1), |inner, _| json!([inner]))});
    let filters = (0..30).fold("[0].x".to_owned(), |inner, _| format!("[?(@[0,0]{inner})]"));
    // Each of these has about 2^30 ways to go before it is known that none leads anywhere.
    for path in [
        format!(".a{}.missing", "[0,0]".repeat(30)),
        format!("{}missing", "..".repeat(30)),
        format!(".a{filters}"),
    ] {
        assert_eq!(
            JsonPath::parse(&path).unwrap().first(&object),
            None,
            "{path}"
        );
    }
    let path = JsonPath::parse(&format!(".a{}", "[0,0]".repeat(30)));
    assert_eq!(path.unwrap().first(&object), None);
}

proptest! {
    #[test]
    fn no_path_panics(path in r"[.\[\]*?()@a-c'0-9:,=<>\\ -]{0,24}") {
        let object = json!({"a": [{"b": 1}, {"c": [1, 2]}], "b": {"a": "c"}});
        if let Ok(path) = JsonPath::parse(&path) {
            let _ = path.first(&object);
        }
    }
}
