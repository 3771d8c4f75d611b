//! Properties of all queries and texts.

use proptest::collection::vec;
use proptest::prelude::*;

use form_urlencoded::Serializer;

use super::error::PARAMETERS;
use crate::query::{
    AnyOf, Condition, Namespaces, Operator, PROJECT_LABEL, Part, Query, Subject, associated,
};
use crate::revision::Revision;

/// Texts of characters with a meaning.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z][a-z.-]{0,6}",
        "[ab\\[\\]'\"\\\\,=!~<>()?@%&+;. -]{0,8}",
        any::<String>(),
    ]
}

fn subjects() -> impl Strategy<Value = Subject> {
    let named = |text: String| Subject::Field(format!("a.{text}"));
    prop_oneof![
        texts().prop_map(Subject::Field),
        texts().prop_map(named),
        texts()
            .prop_filter("labels have keys", |key| !key.is_empty())
            .prop_map(Subject::Label),
        ("[a-zA-Z][a-zA-Z0-9_-]{0,4}", texts())
            .prop_map(|(name, of)| associated(&name, Subject::Field(of))),
        ("[a-zA-Z][a-zA-Z0-9_-]{0,4}", "[a-z./]{1,4}")
            .prop_map(|(name, of)| associated(&name, Subject::Label(of))),
    ]
}

fn conditions() -> impl Strategy<Value = Condition> {
    let with_one = prop::sample::select(vec![
        Operator::Equal,
        Operator::NotEqual,
        Operator::Like,
        Operator::NotLike,
        Operator::Less,
        Operator::AtMost,
        Operator::Greater,
        Operator::AtLeast,
        Operator::Contains,
        Operator::NotContains,
    ]);
    let with_none = prop::sample::select(vec![Operator::Exists, Operator::Missing]);
    let with_any = prop::sample::select(vec![Operator::In, Operator::NotIn]);
    prop_oneof![
        (subjects(), with_one, texts()).prop_map(|(by, is, value)| by.is(is, [value])),
        (subjects(), with_none).prop_map(|(by, is)| by.is(is, [""; 0])),
        (subjects(), with_any, vec(texts(), 0..3)).prop_map(|(by, is, values)| by.is(is, values)),
    ]
}

fn parts() -> impl Strategy<Value = Part> {
    let cursor = texts().prop_map(|text| Some(text).filter(|text| !text.is_empty()));
    prop_oneof![
        Just(Part::All),
        Just(Part::Nothing),
        (1..=u64::MAX, 1..=u64::MAX).prop_map(|(number, size)| Part::Page { number, size }),
        (1..=u64::MAX, cursor).prop_map(|(limit, cursor)| Part::After { limit, cursor }),
    ]
}

fn queries() -> impl Strategy<Value = Query> {
    let any_of = vec(conditions(), 1..3).prop_map(AnyOf::from_iter);
    let label = prop_oneof![
        Just(None),
        Just(Some(PROJECT_LABEL.to_owned())),
        texts().prop_map(Some)
    ];
    let namespaces =
        (vec(texts(), 0..3), label, any::<bool>()).prop_map(|(values, label, is_negated)| {
            Namespaces {
                values,
                label,
                is_negated,
            }
        });
    let revision =
        (any::<u64>(), any::<u32>(), any::<u64>()).prop_map(|(version, history, change)| {
            Revision::new(version, Some(crate::revision::Position { history, change }))
        });
    let asked = (
        vec(any_of, 0..3),
        prop::option::of(namespaces),
        prop::option::of(texts()),
    );
    let sort = vec((subjects(), any::<bool>()), 0..3);
    let counted = (
        vec(subjects(), 0..3),
        any::<bool>(),
        prop::option::of(revision),
    );
    (asked, sort, parts(), counted).prop_map(|(asked, sort, part, counted)| Query {
        filters: asked.0,
        namespaces: asked.1,
        search: asked.2,
        sort,
        part,
        summaries: counted.0,
        summarizes_namespaces: counted.1,
        most_counts: None,
        at_least: counted.2,
    })
}

/// Reads a text; what comes of it is written and read again as the same.
fn check_any(url: &str) -> Result<(), TestCaseError> {
    if let Ok(query) = Query::from_url(url) {
        prop_assert_eq!(Query::from_url(&query.to_url()), Ok(query));
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_query_is_read_as_it_was_written(query in queries()) {
        let url = query.to_url();
        prop_assert!(url.is_ascii());
        prop_assert_eq!(Query::from_url(&url), Ok(query), "{}", url);
    }

    #[test]
    fn no_text_causes_a_panic(url in any::<String>()) {
        check_any(&url)?;
    }

    #[test]
    fn no_value_of_a_parameter_causes_a_panic(place in 0..PARAMETERS.len(), text in texts()) {
        let mut url = Serializer::new(String::new());
        url.append_pair(PARAMETERS[place], &text);
        check_any(&url.finish())?;
    }

    #[test]
    fn no_mutated_query_causes_a_panic(query in queries(), cuts in vec((any::<prop::sample::Index>(), "[&=%+,'\"\\\\()\\[\\]!0-9a-f]{0,3}"), 1..4)) {
        let mut url: Vec<char> = query.to_url().chars().collect();
        for (at, text) in cuts {
            let at = at.index(url.len() + 1);
            let end = (at + text.len() % 2).min(url.len());
            url.splice(at..end, text.chars());
        }
        check_any(&String::from_iter(url))?;
    }
}
