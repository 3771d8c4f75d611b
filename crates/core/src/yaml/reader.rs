//! Reading a document.

use serde_json::Value;

use super::decode::{self, Document};
use super::error::YamlError;
use super::tree::Tree;

/// Reads the first document of a text as kubectl does; an empty text is `null`.
///
/// Members that appear twice have their last value. JSON is read too. The error does not show values of the text.
///
/// ```
/// use lariat_core::yaml;
/// use serde_json::json;
///
/// let pod = yaml::read("apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {on: 'yes'}}\n")?;
/// assert_eq!(pod["metadata"]["labels"], json!({"true": "yes"}));
/// # Ok::<(), yaml::YamlError>(())
/// ```
///
/// # Errors
///
/// Fails if the text is not YAML, has more than 255 levels, repeats too much by aliases, or has a number, key or tag
/// that JSON cannot express.
pub fn read(text: &str) -> Result<Value, YamlError> {
    // The reader of JSON is faster, and accepts tabs, which YAML does not.
    if text.trim_start().starts_with(['{', '['])
        && let Ok(value) = serde_json::from_str(text)
    {
        return Ok(value);
    }
    Ok(read_document(text)?.value)
}

/// [Reads](read) a document with the keys that appear more than once.
///
/// ```
/// use lariat_core::yaml;
/// use serde_json::json;
///
/// let document = yaml::read_document("a: 1\nb: 2\na: 3\n")?;
/// assert_eq!(document.value, json!({"a": 3, "b": 2}));
/// assert_eq!(document.repeated_keys[0].line, 3);
/// # Ok::<(), yaml::YamlError>(())
/// ```
///
/// # Errors
///
/// As [`read`].
pub fn read_document(text: &str) -> Result<Document, YamlError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    check_characters(text)?;
    decode::decode(&Tree::of(text)?)
}

/// Refuses characters that YAML does not allow.
///
/// Source: `yaml_parser_update_buffer`.
fn check_characters(text: &str) -> Result<(), YamlError> {
    let is_allowed = |letter: char| matches!(letter, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..);
    match text.find(|letter| !is_allowed(letter)) {
        None => Ok(()),
        Some(at) => {
            let line = text[..at].matches('\n').count() + 1;
            let problem = "control characters are not allowed";
            Err(YamlError::new(line, problem, format!("yaml: {problem}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Value) {
        assert_eq!(read(text), Ok(expected), "{text}");
    }

    #[test]
    fn documents_have_the_values_of_go() {
        check("", json!(null));
        check("# nothing\n", json!(null));
        check("a: 1\n---\nb: 2\n", json!({"a": 1}));
        check(
            "a: [0644, '0644', yes, \"on\"]",
            json!({"a": [420, "0644", true, "on"]}),
        );
        check(
            "yes: a\n0x10: b\n1.5: c\n",
            json!({"true": "a", "16": "b", "1.5": "c"}),
        );
        check("a: 1\na: 2\n", json!({"a": 2}));
        check(
            "a: !!str 5\nb: !!int '5'\nc: !own 5\nd: !!float 1\n",
            json!({"a": "5", "b": 5, "c": "5", "d": 1}),
        );
        check(
            "a: &x {b: 1}\nc: *x\n",
            json!({"a": {"b": 1}, "c": {"b": 1}}),
        );
        check("{\"a\":\t1}", json!({"a": 1}));
        check("a: |\n  one\n  two", json!({"a": "one\ntwo"}));
        check("a: |\n  one\n  two\n", json!({"a": "one\ntwo\n"}));
        check(
            "a: |\n  one\n  two\nb: c",
            json!({"a": "one\ntwo\n", "b": "c"}),
        );
    }

    #[test]
    fn merges_give_way_to_members_behind_them() {
        let base = "base: &base {a: 1, b: 1}\nmore: &more {b: 2, c: 2}\n";
        let merged = |text: &str| read(&format!("{base}{text}")).unwrap()["all"].clone();
        assert_eq!(merged("all: {<<: *base, b: 3}\n"), json!({"a": 1, "b": 3}));
        assert_eq!(merged("all: {b: 3, <<: *base}\n"), json!({"a": 1, "b": 1}));
        let both = merged("all: {<<: [*base, *more]}\n");
        assert_eq!(both, json!({"a": 1, "b": 1, "c": 2}));
    }

    #[test]
    fn errors_have_a_line_and_no_values() {
        for (text, line) in [
            ("a: b\nhunter2: [\n", 2),
            ("a: .inf\n", 1),
            ("a: 1\n{hunter2: 1}: 2\n", 2),
            ("a:\n- &x [*x]\n", 2),
            ("<<: hunter2\n", 1),
            ("a: *hunter2\n", 1),
            ("a: !!binary hunter2\n", 1),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.line(), line, "{text}: {error}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn repeated_keys_have_the_lines_of_their_values() {
        // The lines of a genuine server.
        for (text, expected) in [
            ("data:\n  a: x\ndata:\n  b: y\n  b: z\n", "5 b, 4 data"),
            ("data:\n  a: x\n  a: |\n    y\n", "3 a"),
            ("data:\n  a: x\n  a:\n  b: x\n", "3 a"),
            ("data:\n  a: x\n  a: y\n  a: z\n", "3 a, 4 a"),
            ("data: {a: b, \"a\":\n\n c}\n", "3 a"),
            ("x:\n- {a: b, a: c}\n- a: 1\n  a: 2\n", "2 a, 4 a"),
            ("data:\n  ? a\n  : b\n  ? a\n  : c\n", "5 a"),
            ("data:\n  a: 1\n  # c\n\n  a:  # d\n\n    \"2\"\n", "7 a"),
            ("{x: 1,\n\na: {b: 3,\n b: 2}}", "4 b"),
            ("data:\n  \"1\": x\n  1: z\n", ""),
            ("data:\n  1: x\n  \"1\": y\n  \"1\": z\n", "4 1"),
            ("1: x\n1: z\n", "2 1"),
            ("a: &x {b: 1}\nc:\n  b: 2\n  <<: *x\n", "1 b"),
            ("a: &x {b: 1}\nc:\n  <<: *x\n  b: 2\n", "4 b"),
        ] {
            let keys = read_document(text).unwrap().repeated_keys;
            let name = |key: &Value| key.as_str().map_or_else(|| key.to_string(), str::to_owned);
            let found = keys
                .iter()
                .map(|repeated| format!("{} {}", repeated.line, name(&repeated.key)));
            assert_eq!(found.collect::<Vec<_>>().join(", "), expected, "{text}");
        }
    }

    #[track_caller]
    fn check_errors(errors: &[(&str, &str)]) {
        for (text, expected) in errors {
            let error = read_document(text).unwrap_err();
            assert_eq!(error.in_words_of_go(), *expected, "{text}");
        }
    }

    #[test]
    fn errors_of_values_are_those_of_go() {
        check_errors(&[
            ("a: *x\n", "yaml: unknown anchor 'x' referenced"),
            ("a: -.inf\n", "json: unsupported value: -Inf"),
            (
                "a: !!int 1.0\n",
                "yaml: cannot decode !!float `1.0` as a !!int",
            ),
            ("a: !!null x\n", "yaml: cannot decode !!str `x` as a !!null"),
            (
                "%YAML 1.2\n---\na: b\n",
                "yaml: found incompatible YAML document",
            ),
            (
                "<<: 1\n",
                "yaml: map merge requires map or sequence of maps as the value",
            ),
            ("a: \u{1}\n", "yaml: control characters are not allowed"),
        ]);
    }

    #[test]
    fn errors_of_syntax_are_those_of_go() {
        check_errors(&[
            (
                "a: b: c",
                "yaml: mapping values are not allowed in this context",
            ),
            ("a: [", "yaml: line 1: did not find expected node content"),
            ("{", "yaml: line 1: did not find expected node content"),
            ("a: [1\n", "yaml: line 1: did not find expected ',' or ']'"),
            ("{a: [b}", "yaml: did not find expected ',' or ']'"),
            (
                "x:\n- a\n\nb: \"c\n",
                "yaml: line 5: found unexpected end of stream",
            ),
            (
                "x:\n  a: b\n  c\n  d: e\n",
                "yaml: line 4: could not find expected ':'",
            ),
            (
                "x:\n\ta: b\n",
                "yaml: line 2: found character that cannot start any token",
            ),
            (
                "x:\n  a: b\n\tc: d\n",
                "yaml: line 3: found a tab character that violates indentation",
            ),
            (
                "x:\n  a: b\n  - c\n",
                "yaml: line 2: did not find expected key",
            ),
            (
                "x:\n  a: @b\n",
                "yaml: line 2: found character that cannot start any token",
            ),
            (
                "x:\n  a: !x!y b\n",
                "yaml: line 1: found undefined tag handle",
            ),
            (
                "x:\n  a: \"\\q\"\n",
                "yaml: line 2: found unknown escape character",
            ),
            (
                "x:\n  a: \"\\xzz\"\n",
                "yaml: line 2: did not find expected hexdecimal number",
            ),
        ]);
    }

    #[test]
    fn levels_are_bounded() {
        for levels in [200, 255, 256, 10_000] {
            let flow = format!("a: {}{}", "[".repeat(levels - 1), "]".repeat(levels - 1));
            let block = format!("{}a", "- ".repeat(levels));
            for text in [flow, block] {
                let read = read_document(&text).map(drop);
                assert_eq!(read.is_ok(), levels <= 255, "{levels}");
                let message = read.map_err(|error| error.in_words_of_go().to_owned());
                assert!(levels <= 255 || message.unwrap_err().contains("exceeded max depth"));
            }
        }
        let mut text = "a0: &a0 [1]\n".to_owned();
        for level in 1..300 {
            text.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
        }
        let error = read_document(&text).unwrap_err();
        assert_eq!(error.in_words_of_go(), "yaml: exceeded max depth of 10000");
    }

    #[test]
    fn anchors_within_anchors_take_no_copies() {
        let open: String = (0..200).map(|level| format!("&a{level} [")).collect();
        let items = "1,".repeat(100_000);
        let text = format!("{open}{items}{}", "]".repeat(200));
        assert!(read(&text).is_ok());
        assert!(read(&format!("a: &x [{items}]\nb: *x\n")).is_ok());
    }

    #[test]
    fn aliases_of_long_texts_are_bounded() {
        let (long, name) = ("x".repeat(100_000), "k".repeat(1_000));
        for (anchor, aliases) in [(long, 10_000), (format!("{{{name}: 1}}"), 40_000)] {
            let text = |aliases: usize| format!("- &x {anchor}\n{}", "- *x\n".repeat(aliases));
            let error = read(&text(aliases)).map(drop).unwrap_err().to_string();
            assert!(error.contains("aliases repeat too many values"), "{error}");
            assert!(read(&text(10)).is_ok());
        }
    }

    #[test]
    fn aliases_of_aliases_are_bounded() {
        let mut text = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n".to_owned();
        for level in 1..10 {
            let before = level - 1;
            let item = format!("*a{before}");
            let items = vec![item; 10].join(",");
            text.push_str(&format!("a{level}: &a{level} [{items}]\n"));
        }
        let error = read(&text).unwrap_err().to_string();
        assert!(error.contains("aliases repeat too many values"), "{error}");
    }
}
