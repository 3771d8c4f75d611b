//! Arbitrary changes, queries and permissions.

use lariat_core::ObjectKey;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::access::Access;
use crate::query::{AnyOf, Condition, Operator, Query, Subject, field, label};

/// Texts in which SQL, LIKE, words, numbers and case could mean something.
pub(super) const TEXTS: [&str; 18] = [
    "",
    "a",
    "A",
    "a_b",
    "a%b",
    "axb",
    "10",
    "9",
    "a10",
    "a9",
    "it's",
    "\"q\"",
    "é web",
    "web-Api",
    "É",
    "\0a",
    "\u{1}",
    "a\u{1}\u{2}b",
];

pub(super) fn text() -> impl Strategy<Value = String> {
    // Long ones differ behind what an index has of them.
    let long =
        prop::sample::select(["a", "b", ""].as_slice()).prop_map(|end| "Web ".repeat(900) + end);
    let text = prop::sample::select(TEXTS.as_slice()).prop_map(str::to_owned);
    prop_oneof![20 => text, 1 => long]
}

/// A value of the field of this name, as text.
pub(super) fn value(of: &str) -> BoxedStrategy<String> {
    let one_of = |texts: &'static [&'static str]| {
        prop::sample::select(texts).prop_map(str::to_owned).boxed()
    };
    match of {
        "integer" => {
            let ends = prop::sample::select([i64::MIN, i64::MAX].as_slice());
            let number = prop_oneof![9 => -3..12_i64, 1 => ends];
            number.prop_map(|number| number.to_string()).boxed()
        }
        "real" => one_of(&[
            "-1.5", "0", "-0.0", "0.1", "2", "10", "1e300", "5e-324", "-1e300",
        ]),
        "boolean" => one_of(&["true", "false"]),
        "quantity" => one_of(&["100m", "0.1", "1", "1Gi", "1024Mi", "-1", "1e3"]),
        "time" => one_of(&[
            "2026-01-31T12:00:00Z",
            "2026-01-31T13:00:00+01:00",
            "1999-12-31T23:59:59.5Z",
        ]),
        "ip" => one_of(&["10.0.0.2", "10.0.0.10", "::1", "::ffff:10.0.0.2", "fe80::"]),
        _ => text().boxed(),
    }
}

pub(super) const SINGLE: [&str; 8] = [
    "text", "natural", "integer", "real", "boolean", "quantity", "time", "ip",
];

pub(super) fn spec() -> impl Strategy<Value = Json> {
    let single: Vec<_> = SINGLE
        .iter()
        .map(|name| prop::option::weighted(0.8, value(name)))
        .collect();
    let many = || prop::collection::vec(text(), 0..3);
    (single, many(), many()).prop_map(|(single, many, numbers)| {
        let mut spec = json!({"many": many, "numbers": numbers});
        for (name, value) in SINGLE.iter().zip(single) {
            let value = value.map(|text| match *name {
                "integer" | "real" | "boolean" => serde_json::from_str(&text).unwrap(),
                _ => json!(text),
            });
            spec[*name] = value.into();
        }
        spec
    })
}

pub(super) fn key() -> impl Strategy<Value = ObjectKey> {
    (
        prop::option::of(0..2_usize),
        prop::sample::select(["a", "a1", "a2", "a10", "B"].as_slice()),
    )
        .prop_map(|(namespace, name)| match namespace {
            Some(namespace) => ObjectKey::namespaced(["one", "two"][namespace], name),
            None => ObjectKey::cluster(name),
        })
}

#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) key: ObjectKey,
    /// The labels and the spec; none if it is deleted.
    pub(super) object: Option<(Vec<(usize, String)>, Json)>,
}

pub(super) fn change() -> impl Strategy<Value = Change> {
    let labels = prop::collection::vec((0..2_usize, text()), 0..3);
    let object = prop::option::weighted(0.8, (labels, spec()));
    (key(), object).prop_map(|(key, object)| Change { key, object })
}

pub(super) fn condition() -> impl Strategy<Value = Condition> {
    let of = prop::sample::select([&SINGLE[..], &["many[*]", "numbers[*]", "label"]].concat());
    (of, 0..14_usize).prop_flat_map(|(of, operator)| {
        let operator = OPERATORS[operator];
        let is_text = matches!(of, "text" | "natural" | "many[*]" | "numbers[*]" | "label");
        let operator = match operator {
            Operator::Like | Operator::NotLike if !is_text => Operator::AtLeast,
            Operator::Contains | Operator::NotContains if !of.ends_with(']') => Operator::NotEqual,
            operator => operator,
        };
        let count = match operator {
            Operator::Exists | Operator::Missing => 0..1,
            Operator::In | Operator::NotIn => 0..4,
            _ => 1..2,
        };
        let subject = match of {
            "label" => label("l0"),
            of => field(&format!("spec.{of}")),
        };
        prop::collection::vec(value(of), count)
            .prop_map(move |values| subject.clone().is(operator, values))
    })
}

pub(super) const OPERATORS: [Operator; 14] = [
    Operator::Equal,
    Operator::NotEqual,
    Operator::Like,
    Operator::NotLike,
    Operator::In,
    Operator::NotIn,
    Operator::Less,
    Operator::AtMost,
    Operator::Greater,
    Operator::AtLeast,
    Operator::Exists,
    Operator::Missing,
    Operator::Contains,
    Operator::NotContains,
];

pub(super) fn access() -> impl Strategy<Value = Access> {
    let names = prop::sample::subsequence(vec!["a", "a1", "a2", "a10", "B"], 0..4);
    let namespaces = prop::sample::subsequence(vec!["one", "two"], 0..2);
    let of = prop::sample::select(vec![None, Some("one"), Some("two")]);
    (namespaces, of, names, 0..6).prop_map(|(namespaces, of, names, kind)| match kind {
        0 => Access::everything(),
        1 => Access::nothing(),
        _ => Access::of_namespaces(namespaces).union(&Access::of_names(of, names)),
    })
}

pub(super) fn order() -> impl Strategy<Value = (Subject, bool)> {
    let of = prop::sample::select([&SINGLE[..], &["label", "name", "namespace"]].concat())
        .prop_map(|of| match of {
            "label" => label("l1"),
            "name" | "namespace" => field(&format!("metadata.{of}")),
            of => field(&format!("spec.{of}")),
        });
    (of, any::<bool>())
}

/// Returns a query for objects that meet a condition of each filter, in an order.
pub(super) fn sorted(filters: Vec<Vec<Condition>>, orders: Vec<(Subject, bool)>) -> Query {
    let filters = filters.into_iter().map(AnyOf::from_iter);
    let filtered = filters.fold(Query::new(), Query::filter);
    let orders = orders.into_iter();
    orders.fold(filtered, |query, (by, is_descending)| {
        if is_descending {
            query.sort_descending(by)
        } else {
            query.sort(by)
        }
    })
}

pub(super) fn query() -> impl Strategy<Value = Query> {
    let filters = prop::collection::vec(prop::collection::vec(condition(), 1..3), 0..3);
    let orders = prop::collection::vec(order(), 0..3);
    let words = prop::option::weighted(
        0.2,
        prop::sample::select(["web", "we", "a", "API we", "é", "x y"].as_slice()),
    );
    (filters, orders, words).prop_map(|(filters, orders, words)| {
        let sorted = sorted(filters, orders);
        match words {
            Some(words) => sorted.search(words),
            None => sorted,
        }
    })
}
