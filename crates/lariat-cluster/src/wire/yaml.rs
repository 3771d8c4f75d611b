//! Answers in YAML.
//!
//! Block style with the members in the order of their names, as the API server writes it. A text is
//! quoted if a reader of YAML 1.1 or 1.2 could take it for something else.

use serde_json::Value;

/// Writes a document.
///
/// # Panics
///
/// Never: all of JSON is YAML.
pub(crate) fn to_yaml(value: &Value) -> String {
    // Lines are as long as the texts in them.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    serde_saphyr::to_string_with_options(value, options).expect("all of JSON is YAML")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn documents_are_written_as_blocks() {
        let document = json!({
            "kind": "ConfigMap", "data": {"a": "1", "yes": "two\nlines\n", "b.c": "x: y"},
            "metadata": {"labels": {}, "finalizers": ["demo/a", "b"], "generation": 1},
            "items": [{"a": [1, [2, 3]], "b": null}, {}], "end": "no newline\nat end",
            "ends": "two\n\n", "indented": " a\nb",
        });
        let expected = concat!(
            "data:\n  a: \"1\"\n  b.c: \"x: y\"\n  \"yes\": |\n    two\n    lines\n",
            "end: |-\n  no newline\n  at end\n",
            "ends: |+\n  two\n  \n",
            "indented: |2-\n   a\n  b\n",
            "items:\n- a:\n  - 1\n  - - 2\n    - 3\n  b: null\n- {}\n",
            "kind: ConfigMap\n",
            "metadata:\n  finalizers:\n  - demo/a\n  - b\n  generation: 1\n  labels: {}\n",
        );
        assert_eq!(to_yaml(&document), expected);
    }

    #[test]
    fn texts_that_could_be_taken_for_something_else_are_quoted() {
        for (scalar, expected) in [
            ("plain", "plain\n"),
            ("", "\"\"\n"),
            ("True", "\"True\"\n"),
            ("1e3", "\"1e3\"\n"),
            ("~", "\"~\"\n"),
            ("a #b", "\"a #b\"\n"),
            ("2024-01-01T00:00:00Z", "\"2024-01-01T00:00:00Z\"\n"),
            ("a\u{1}\u{85}\"\\", "\"a\\x01\\N\\\"\\\\\"\n"),
            ("https://localhost:1", "https://localhost:1\n"),
        ] {
            assert_eq!(to_yaml(&scalar.into()), expected, "{scalar}");
        }
    }
}
