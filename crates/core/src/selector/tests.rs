use proptest::prelude::*;

use super::*;
use crate::Labels;

fn labels() -> Labels {
    [
        ("app", "web"),
        ("tier", "2"),
        ("demo.dev/part", "a"),
        ("empty", ""),
    ]
    .into_iter()
    .collect()
}

fn check(selector: &str, expected: bool) {
    let parsed: LabelSelector = selector.parse().unwrap();
    assert_eq!(parsed.matches(&labels()), expected, "{selector}");
}

#[test]
fn label_selectors_match_as_kubernetes_does() {
    check("", true);
    check("app=web", true);
    check("app==web,tier=2", true);
    check("app!=web", false);
    check("missing!=web", true);
    check("app in (api, web)", true);
    check("app notin (api,web)", false);
    check("missing notin (api)", true);
    check("missing in (api)", false);
    check("app", true);
    check("!app", false);
    check("!missing", true);
    check("demo.dev/part=a", true);
    check("empty=", true);
    check("empty in ()", true);
    check("app in ()", false);
    check("app in (,web)", true);
    check("tier>1,tier<3", true);
    check("tier>2", false);
    check("app>2", false);
    check("in=web", false);
    check(" app = web ", true);
}

#[test]
fn label_selector_errors_speak_as_the_api_server_does() {
    for (selector, expected) in [
        (
            "a b",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        (
            "x=,y===",
            "unable to parse requirement: found '=', expected: identifier",
        ),
        (
            "=a",
            "found '=', expected: !, identifier, or 'end of string'",
        ),
        ("a,", "found '', expected: identifier after ','"),
        (
            "a in b",
            "unable to parse requirement: found 'b' expected: '('",
        ),
        (
            "a in (b",
            "unable to parse requirement: found '', expected: ',' or ')'",
        ),
        ("a=b)", "found ')', expected: ',' or 'end of string'"),
    ] {
        assert_eq!(
            selector.parse::<LabelSelector>().unwrap_err().to_string(),
            expected
        );
    }
    for selector in ["a>x", "-a=b", "a=-b", "/a", "A.B/c=d", &"k".repeat(64)] {
        let error = selector.parse::<LabelSelector>().unwrap_err().to_string();
        assert!(error.contains("Invalid value"), "{selector}: {error}");
    }
}

fn field(path: &str) -> &'static str {
    match path {
        "metadata.name" => "web-0",
        "odd" => r"a,b=c\d",
        _ => "",
    }
}

#[test]
fn field_selectors_match_equal_and_unequal() {
    for (selector, expected) in [
        ("", true),
        ("metadata.name=web-0", true),
        ("metadata.name==web-0", true),
        ("metadata.name!=web-0", false),
        ("metadata.name=web-0,spec.nodeName=", true),
        ("metadata.name=web-0,spec.nodeName!=", false),
        (r"odd=a\,b\=c\\d", true),
    ] {
        let parsed: FieldSelector = selector.parse().unwrap();
        assert_eq!(parsed.matches(field), expected, "{selector}");
    }
}

#[test]
fn field_selector_errors_name_the_part_that_is_wrong() {
    let error = "a=b,metadata.name"
        .parse::<FieldSelector>()
        .unwrap_err()
        .to_string();
    let expected = "invalid selector: 'a=b,metadata.name'; can't understand 'metadata.name'";
    assert_eq!(error, expected);
    for selector in ["a=b=c", r"a=\x", "a!b", r"a=b\"] {
        assert!(selector.parse::<FieldSelector>().is_err(), "{selector}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_a_parser_panic(text in "[-a-z=!<>(),\\\\ é/.0-9]{0,24}") {
        let _ = text.parse::<LabelSelector>();
        let _ = text.parse::<FieldSelector>();
    }
}

#[test]
fn a_label_selector_prints_what_it_parses() {
    for text in [
        "",
        "app=web",
        "app!=web,tier in (a,b),tier notin (c,d),x,!y,n>3,n<2",
        "empty=",
    ] {
        let selector: LabelSelector = text.parse().unwrap();
        assert_eq!(selector.to_string(), text);
    }
    let spaced: LabelSelector = "app == web , x in ( a )".parse().unwrap();
    assert_eq!(spaced.to_string(), "app=web,x=a");
    let required: Vec<_> = spaced.required().collect();
    assert_eq!(
        required,
        [
            ("app", &["web".to_owned()][..]),
            ("x", &["a".to_owned()][..])
        ]
    );
}

#[test]
fn a_field_selector_prints_what_it_parses() {
    for text in ["", "a=b", r"a.b!=c,d=x\\y\,z\=w"] {
        let selector: FieldSelector = text.parse().unwrap();
        assert_eq!(selector.to_string(), text);
    }
}
