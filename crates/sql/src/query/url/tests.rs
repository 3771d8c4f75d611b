//! What is read from a URL, form by form, and what is refused.

use super::*;
use crate::query::{AnyOf, Operator, Subject, associated, field, label};

/// Encodes parameters and reads them as a URL.
fn read(parameters: &[(&str, &str)]) -> Result<Query, UrlError> {
    let mut url = Serializer::new(String::new());
    url.extend_pairs(parameters);
    Query::from_url(&url.finish())
}

fn filter(text: &str) -> Result<Query, UrlError> {
    read(&[("filter", text)])
}

#[track_caller]
fn check_filter(text: &str, expected: impl Into<AnyOf>) {
    let query = Query::new().filter(expected);
    assert_eq!(filter(text).as_ref(), Ok(&query), "{text}");
    assert_eq!(Query::from_url(&query.to_url()), Ok(query), "{text}");
}

#[test]
fn each_operator_is_read() {
    let name = || field("metadata.name");
    for (text, operator) in [
        ("metadata.name=a", Operator::Equal),
        ("metadata.name==a", Operator::Equal),
        (" metadata.name = a ", Operator::Equal),
        ("metadata.name!=a", Operator::NotEqual),
        ("metadata.name~a", Operator::Like),
        ("metadata.name !~ a", Operator::NotLike),
        ("metadata.name<a", Operator::Less),
        ("metadata.name<=a", Operator::AtMost),
        ("metadata.name>a", Operator::Greater),
        ("metadata.name>='a'", Operator::AtLeast),
        ("metadata.name contains a", Operator::Contains),
        ("metadata.name contains'a'", Operator::Contains),
        ("metadata.name NotContains \"a\"", Operator::NotContains),
        ("metadata.name in (a)", Operator::In),
        ("metadata.name IN(a)", Operator::In),
        ("metadata.name notin ( a )", Operator::NotIn),
    ] {
        check_filter(text, name().is(operator, ["a"]));
    }
    check_filter("metadata.name", name().exists());
    check_filter("!metadata.name", name().is(Operator::Missing, [""; 0]));
    check_filter(" ! 'metadata.name' ", name().is(Operator::Missing, [""; 0]));
    check_filter("metadata.name in ()", name().is_in([""; 0]));
    check_filter(
        "metadata.name in (a, 'b,c' ,\"d)\")",
        name().is_in(["a", "b,c", "d)"]),
    );
}

#[test]
fn associated_objects_are_named_in_front_of_a_colon() {
    let node = |of| associated("node", of);
    let memory = || node(field("status.capacity.memory"));
    check_filter(
        "node:status.capacity.memory>1Gi",
        memory().greater_than("1Gi"),
    );
    check_filter("!node:spec.unschedulable", {
        let unschedulable = node(field("spec.unschedulable"));
        unschedulable.is(Operator::Missing, [""; 0])
    });
    check_filter("node:metadata.labels[a:b/c] in (x)", {
        node(label("a:b/c")).is_in(["x"])
    });
    check_filter(
        "a-b_2:'it is'=x",
        associated("a-b_2", field("it is")).equals("x"),
    );
    check_filter("node:'a:b'=x", node(field("a:b")).equals("x"));
    // No associations: a name in quotes, one in brackets, and what cannot be the name of one.
    check_filter("'node:x'=y", field("node:x").equals("y"));
    let annotation = field("metadata.annotations[a:b]");
    check_filter("metadata.annotations[a:b]=y", annotation.equals("y"));
    check_filter("a.b:c=y", field("a.b:c").equals("y"));
    let query = Query::from_url("sort=-node:metadata.name,a&summary=node:metadata.labels.zone");
    let expected = Query::new()
        .sort_descending(node(field("metadata.name")))
        .sort(field("a"))
        .summarize(node(label("zone")));
    assert_eq!(query, Ok(expected));
    for text in ["node:=x", "node:", "a:b:c=x", "node:-x=y", "'node':x=y"] {
        assert!(filter(text).is_err(), "{text}");
    }
    let deep = "a:".repeat(100_000);
    assert!(filter(&deep).is_err());
}

#[test]
fn commas_join_conditions_and_filters_stand_beside_each_other() {
    check_filter(
        "a=1,b in (2,3) , c,!d",
        field("a")
            .equals(1)
            .or(field("b").is_in([2, 3]))
            .or(field("c").exists())
            .or(field("d").is(Operator::Missing, [""; 0])),
    );
    let query = Query::from_url("filter=a=1&filter=b!=2&").unwrap();
    let expected = Query::new()
        .filter(field("a").equals(1))
        .filter(field("b").differs(2));
    assert_eq!(query, expected);
}

#[test]
fn values_are_what_they_are_whatever_is_in_them() {
    for (text, value) in [
        ("a=", ""),
        ("a=''", ""),
        ("a=b=c==", "b=c=="),
        ("a=x!y", "x!y"),
        ("a=a_b%c", "a_b%c"),
        ("a=c:\\dir", "c:\\dir"),
        ("a='c:\\\\dir'", "c:\\dir"),
        ("a='it\\'s'", "it's"),
        ("a=\"it's\"", "it's"),
        ("a=\"say \\\"no\\\"\"", "say \"no\""),
        ("a='\\n'", "n"),
        ("a='x, (y)'", "x, (y)"),
        ("a='=~!'", "=~!"),
        ("a='\0'", "\0"),
        ("a='\n'", "\n"),
        ("a=grün🦀", "grün🦀"),
        ("a=2026-01-31T12:00:00+01:00", "2026-01-31T12:00:00+01:00"),
        ("a=%27", "%27"),
        ("a='; DROP TABLE x; --'", "; DROP TABLE x; --"),
        ("a=in", "in"),
        ("a=[b]", "[b]"),
    ] {
        check_filter(text, field("a").equals(value));
    }
}

#[test]
fn names_may_have_brackets_quotes_and_conditions() {
    let a = |name: &str| Subject::Field(name.to_owned()).equals("x");
    for name in [
        "restarts",
        "spec.containers[*].image",
        "spec.containers[0].image",
        "metadata.annotations['a=b,c']",
        "metadata.annotations[a=b,c d]",
        "metadata.annotations[\"a.b/c\"].d",
        "metadata.annotations['it\\'s ]']",
        "status.conditions[?(@.type==\"Ready\")].status",
        "status.conditions[?(@.type=='(a)')].status",
        "größe",
        "metadata.labels",
        "metadata.labelsx",
        "metadata.labels[a][b]",
    ] {
        check_filter(&format!("{name}=x"), a(name));
        check_filter(
            &format!("{name} in (x)"),
            Subject::Field(name.to_owned()).is_in(["x"]),
        );
        check_filter(name, Subject::Field(name.to_owned()).exists());
    }
    check_filter("'two words'=x", a("two words"));
    check_filter("'metadata.labels[a]'=x", a("metadata.labels[a]"));
    check_filter("''=x", a(""));
    check_filter("'-a'=x", a("-a"));
    for text in [
        "metadata.labels[a.b/c]",
        "metadata.labels['a.b/c']",
        "metadata.labels[\"a.b/c\"]",
        "metadata.labels.a.b/c",
    ] {
        check_filter(&format!("{text}=x"), label("a.b/c").equals("x"));
    }
    check_filter("metadata.labels['a\\'b=]']=x", label("a'b=]").equals("x"));
}

#[test]
fn every_other_parameter_is_read() {
    let name = || field("metadata.name");
    let new = Query::new;
    for (url, expected) in [
        ("", new()),
        ("&&", new()),
        (
            "sort=metadata.name,-metadata.labels[a]",
            new().sort(name()).sort_descending(label("a")),
        ),
        (
            "sort=-'-x'&sort=metadata.name",
            new().sort_descending(field("-x")).sort(name()),
        ),
        ("page=2&pagesize=50", new().page(2, 50)),
        ("pagesize=50", new().page(1, 50)),
        ("page=2", new()),
        ("limit=5", new().limit(5)),
        ("limit=5&continue=", new().limit(5)),
        ("continue=abc%3D%3D&limit=5", new().limit(5).after("abc==")),
        ("search=web+front%C3%A9", new().search("web fronté")),
        ("search=", new().search("")),
        ("namespaces=a,b", new().namespaces(["a", "b"])),
        ("namespaces=()", new().namespaces([""; 0])),
        (
            "projectsornamespaces=p-1%2Ckube-system",
            new().projects_or_namespaces(["p-1", "kube-system"], PROJECT_LABEL, false),
        ),
        (
            "projectsornamespaces!=p&projectlabel=team",
            new().projects_or_namespaces(["p"], "team", true),
        ),
        (
            "summary=metadata.labels[app],status.phase&summaryonly=true&summarynamespaced",
            new()
                .summarize(label("app"))
                .summarize(field("status.phase"))
                .only_counts()
                .summarize_by_namespace(),
        ),
        ("summaryonly=false&limit=1", new().limit(1)),
        (
            "revision=81734-1f0a93c4-512",
            new().at_least("81734-1f0a93c4-512".parse().unwrap()),
        ),
    ] {
        assert_eq!(Query::from_url(url).as_ref(), Ok(&expected), "{url}");
        assert_eq!(Query::from_url(&expected.to_url()), Ok(expected), "{url}");
    }
}

/// A parameter, its value, and at which character the error finds what.
const FAULTS: &[(&str, &str, usize, &str)] = &[
    ("filter", "", 1, "nothing"),
    ("filter", " ", 2, "its end"),
    ("filter", "a=1,", 5, "its end"),
    ("filter", "a=1,,b=2", 5, "','"),
    ("filter", "=1", 1, "'='"),
    ("filter", "a=b c", 4, "' '"),
    ("filter", "é='b'c", 6, "'c'"),
    ("filter", "a=it's", 5, "'\\''"),
    ("filter", "a='it", 6, "its end"),
    ("filter", "a='it\\", 7, "its end"),
    ("filter", "a=(b)", 3, "'('"),
    ("filter", "a=b)", 4, "')'"),
    ("filter", "a=~b", 3, "'~'"),
    ("filter", "a===b", 4, "'='"),
    ("filter", "a=b\0", 4, "'\\0'"),
    ("filter", "a\0=b", 2, "'\\0'"),
    ("filter", "a ! b", 3, "'!'"),
    ("filter", "a like b", 3, "'l'"),
    ("filter", "a in b", 6, "'b'"),
    ("filter", "a in (b", 8, "its end"),
    ("filter", "a in (b,)", 9, "')'"),
    ("filter", "a in (b c)", 8, "' '"),
    ("filter", "a contains", 11, "its end"),
    ("filter", "a contains-b", 11, "'-'"),
    ("filter", "a<", 3, "its end"),
    ("filter", "!a=b", 3, "'='"),
    ("filter", "!!a", 2, "'!'"),
    ("filter", "-a", 1, "'-'"),
    ("filter", "a[b=c", 6, "its end"),
    ("filter", "a['b=c", 7, "its end"),
    ("filter", "a['b'c]", 6, "'c'"),
    ("filter", "a[]=b", 3, "']'"),
    ("filter", "metadata.labels['']=b", 19, "']'"),
    ("filter", "a[b]c=d", 5, "'c'"),
    ("filter", "a]=b", 2, "']'"),
    ("sort", "", 1, "nothing"),
    ("sort", "--a", 2, "'-'"),
    ("sort", "a desc", 3, "'d'"),
    ("sort", "ip(a)", 3, "'('"),
    ("summary", "a,", 3, "its end"),
    ("namespaces", "", 1, "nothing"),
    ("projectsornamespaces", "a b", 2, "' '"),
    ("projectsornamespaces!", ",", 1, "','"),
    ("page", "", 1, "nothing"),
    ("page", "0", 1, "'0'"),
    ("page", "1x", 2, "'x'"),
    ("pagesize", "-1", 1, "'-'"),
    ("pagesize", "+1", 1, "'+'"),
    ("limit", "18446744073709551616", 1, "'1'"),
    ("limit", "٣", 1, "'٣'"),
    ("summaryonly", "yes", 1, "'y'"),
    ("summarynamespaced", "1", 1, "'1'"),
    ("revision", "new", 1, "'n'"),
];

#[test]
fn an_error_names_the_parameter_and_what_was_found_where() {
    for (parameter, text, at, found) in FAULTS {
        let error = read(&[(*parameter, *text)]).unwrap_err();
        let expected = format!(
            "the parameter {parameter} has {found} at character {at} of {text:?}; expected "
        );
        let message = error.to_string();
        assert!(message.starts_with(&expected), "{message}\n{expected}");
    }
}

#[test]
fn parameters_are_known_there_once_and_fit_each_other() {
    for (url, expected) in [
        (
            "Filter=a",
            "unknown parameter \"Filter\": known are filter, sort, ",
        ),
        ("?page=1", "unknown parameter \"?page\": known are "),
        ("=1", "unknown parameter \"\": known are "),
        (
            "page=1&page=1",
            "the parameter page is given twice, as \"1\" and as \"1\": ",
        ),
        (
            "summary=a&summary=b",
            "the parameter summary is given twice, as \"a\" and as \"b\": ",
        ),
        (
            "page=1&limit=2",
            "the parameters page and limit contradict each other: ",
        ),
        (
            "pagesize=1&continue=a",
            "the parameters pagesize and continue contradict each other: ",
        ),
        (
            "limit=1&summaryonly=true",
            "the parameters limit and summaryonly contradict each other: ",
        ),
        (
            "page=1&summaryonly",
            "the parameters page and summaryonly contradict each other: ",
        ),
        (
            "namespaces=a&projectsornamespaces=b",
            "the parameters namespaces and projectsornamespaces contradict ",
        ),
        (
            "projectsornamespaces!=a&projectsornamespaces=b",
            "the parameters projectsornamespaces and projectsornamespaces! contradict ",
        ),
        (
            "continue=a",
            "the parameter continue needs the parameter limit: ",
        ),
        (
            "projectlabel=a&namespaces=b",
            "the parameter projectlabel needs the parameter projectsornamespaces: ",
        ),
        (
            "search=%FF",
            "the query string is not UTF-8 after its first 7 decoded bytes: ",
        ),
    ] {
        let message = Query::from_url(url).unwrap_err().to_string();
        assert!(message.starts_with(expected), "{message}\n{expected}");
    }
}

#[test]
fn an_error_repeats_the_beginning_of_a_long_text_only() {
    let long = "é".repeat(100_000);
    for error in [
        filter(&format!("{long} x")).unwrap_err(),
        read(&[(&long, "")]).unwrap_err(),
        read(&[("search", &long), ("search", &long)]).unwrap_err(),
    ] {
        assert!(error.to_string().len() < 1_500, "{error}");
    }
}

#[test]
fn what_cannot_be_answered_is_not_read_as_something_else() {
    let a = || field("a");
    for condition in [
        a().is(Operator::Equal, [""; 0]),
        a().is(Operator::Equal, ["x", "y"]),
        a().is(Operator::Contains, ["x", "y"]),
        a().is(Operator::Exists, ["x"]),
        a().is(Operator::Missing, ["x", "y"]),
    ] {
        let url = Query::new().filter(condition).to_url();
        assert!(Query::from_url(&url).is_err(), "{url}");
    }
    for query in [
        Query::new().filter(AnyOf::default()),
        Query::new().page(0, 1),
        Query::new().page(1, 0),
        Query::new().limit(0),
        Query::new().after("cursor"),
    ] {
        let url = query.to_url();
        assert!(Query::from_url(&url).is_err(), "{url}");
    }
}
