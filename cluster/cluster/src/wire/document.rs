//! Reading documents: JSON, which may say things twice, and YAML.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use lariat_apimachinery::nesting::{DEEPEST, is_deeper};
use lariat_apimachinery::schema::{self, DecodeError, FieldPath, Step, StrictErrors, TypeRef};
use lariat_apimachinery::{go_json, go_text};
use lariat_core::yaml::{self, RepeatedKey};
use memchr::{memchr, memchr2_iter};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A document, and its duplicate members.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) value: Value,
    pub(crate) duplicates: Duplicates,
    /// Whether it is JSON with a number that is no integer of 64 bits.
    pub(crate) has_float: bool,
}

/// The members that were in a document more than once; the last of each counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Duplicates {
    /// In JSON: sentences about them, in the order of the document.
    Worded(Vec<String>),
    /// In YAML: the same, as Go's reader words it.
    Lines(Vec<String>),
}

impl Duplicates {
    pub(crate) fn none() -> Self {
        Self::Worded(Vec::new())
    }

    fn of_yaml(keys: &[RepeatedKey]) -> Self {
        if keys.is_empty() {
            return Self::none();
        }
        let line = |repeated: &RepeatedKey| {
            let key = go_text::syntax(&repeated.key);
            format!("line {}: key {key} already set in map", repeated.line)
        };
        Self::Lines(keys.iter().map(line).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Worded(sentences) | Self::Lines(sentences) => sentences.is_empty(),
        }
    }

    /// Returns the warnings for the client.
    pub(crate) fn warnings(&self) -> Vec<String> {
        match self {
            Self::Worded(sentences) | Self::Lines(sentences) => sentences.clone(),
        }
    }

    /// Returns the errors of a strict request.
    pub(crate) fn errors(&self) -> Vec<String> {
        match self {
            Self::Worded(sentences) => sentences.clone(),
            Self::Lines(lines) => {
                vec![format!("yaml: unmarshal errors:\n  {}", lines.join("\n  "))]
            }
        }
    }
}

impl Document {
    /// Reads JSON.
    pub(crate) fn json(bytes: &[u8]) -> Result<Self, String> {
        Self::read_json(bytes, None).map(|(document, _)| document)
    }

    /// Reads an object of a type, as Go's decoder does: a duplicate member is read into the value of the one before.
    ///
    /// Returns also the first value of a wrong type among those that do not show in the document.
    pub(crate) fn json_of(
        bytes: &[u8],
        typed: TypeRef<'_>,
    ) -> Result<(Self, Option<DecodeError>), String> {
        Self::read_json(bytes, Some(typed))
    }

    fn read_json(
        bytes: &[u8],
        typed: Option<TypeRef<'_>>,
    ) -> Result<(Self, Option<DecodeError>), String> {
        let mut found = Found {
            typed,
            bytes,
            ..Found::default()
        };
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        let seed = Reader {
            path: &FieldPath::ROOT,
            found: &mut found,
        };
        let value = seed.deserialize(&mut reader);
        let value = value.and_then(|value| reader.end().map(|()| value));
        let refuse = |error: &str| {
            let known = go_json::syntax_error(bytes).or_else(|| go_json::overflow(bytes));
            known.unwrap_or_else(|| error.to_owned())
        };
        let value = value.map_err(|error| refuse(&error.to_string()))?;
        if is_deeper(&value, DEEPEST) {
            return Err(refuse("exceeded max depth"));
        }
        let duplicates = Duplicates::Worded(found.strict_errors.into_sentences());
        let document = Self {
            value,
            duplicates,
            has_float: found.has_float,
        };
        Ok((document, found.decode_error))
    }

    /// Reads YAML, of which JSON is a part; errors are those of Go's reader.
    pub(crate) fn yaml(bytes: &[u8]) -> Result<Self, String> {
        // The reader of JSON is much faster. Only duplicates are left to that of YAML, which words them otherwise.
        if bytes.trim_ascii_start().starts_with(b"{")
            && let Ok(mut document) = Self::json(bytes)
            && document.duplicates.is_empty()
        {
            schema::read_whole_numbers(&mut document.value);
            return Ok(document);
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|_| "yaml: invalid leading UTF-8 octet".to_owned())?;
        let read = yaml::read_document(text).map_err(|error| error.in_words_of_go().to_owned())?;
        if is_deeper(&read.value, DEEPEST) {
            return Err("yaml: exceeded max depth of 10000".to_owned());
        }
        Ok(Self {
            value: read.value,
            duplicates: Duplicates::of_yaml(&read.repeated_keys),
            has_float: false,
        })
    }
}

/// The depth of documents that are handled on the present stack.
const SHALLOW: usize = 20;

/// The stack for deeper documents, in bytes.
const STACK: usize = 32 * 1024 * 1024;

/// Returns whether a body of JSON nests so deep that it needs a larger stack.
pub(crate) fn is_deep(body: &[u8]) -> bool {
    // Most bodies open so few brackets that they need not be matched.
    memchr2_iter(b'[', b'{', body).nth(SHALLOW).is_some() && brackets(body) > SHALLOW
}

/// Returns whether a body of YAML may nest so deep that it needs a larger stack.
pub(crate) fn is_deep_yaml(body: &[u8]) -> bool {
    let is_indicator = |byte: &&u8| matches!(byte, b' ' | b'-' | b'?' | b':');
    let lines = body.split(|byte| *byte == b'\n');
    let columns = lines.map(|line| line.iter().take_while(is_indicator).count());
    // A level takes two columns at least.
    let indentation = columns.max().unwrap_or(0).div_ceil(2);
    // No column tells how deep the values become into which aliases put others.
    let has_aliases = || memchr(b'&', body).is_some() && memchr(b'*', body).is_some();
    brackets(body) + indentation > SHALLOW || has_aliases()
}

/// Works with a stack that is large enough for the deepest document.
fn with_stack<T>(work: impl FnOnce() -> T) -> T {
    stacker::grow(STACK, work)
}

/// A future whose every poll has enough stack for the deepest document.
#[derive(Debug)]
pub(crate) struct WithStack<F> {
    /// `None` when it is dropped.
    work: Option<Pin<Box<F>>>,
}

impl<F> WithStack<F> {
    pub(crate) fn new(work: F) -> Self {
        Self {
            work: Some(Box::pin(work)),
        }
    }
}

impl<F: Future> Future for WithStack<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        match &mut self.work {
            Some(work) => with_stack(|| work.as_mut().poll(context)),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for WithStack<F> {
    fn drop(&mut self) {
        // A deep document is dropped level by level.
        let work = self.work.take();
        with_stack(|| drop(work));
    }
}

/// Counts the brackets that are open at once.
fn brackets(text: &[u8]) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for byte in text {
        match byte {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

/// The findings about a document beside its values.
#[derive(Debug, Default)]
struct Found<'a> {
    /// The type of the document, if it is known.
    typed: Option<TypeRef<'a>>,
    /// The members that were there again.
    strict_errors: StrictErrors,
    /// The first value of a wrong type that another one replaced.
    decode_error: Option<DecodeError>,
    bytes: &'a [u8],
    has_float: bool,
    /// Whether zeros with a sign are integers, once one was met.
    has_integer_zero: Option<bool>,
}

impl<'a> Found<'a> {
    /// Returns whether no zero with a sign has a fraction; Go reads `-0` as an integer.
    ///
    /// The reader of JSON makes it a float, as if it had one. The document is searched once, not for each zero.
    fn has_integer_zero(&mut self) -> bool {
        let bytes = self.bytes;
        *self.has_integer_zero.get_or_insert_with(|| {
            let zeros = bytes.windows(3).filter(|bytes| bytes.starts_with(b"-0"));
            let mut behind = zeros.map(|bytes| bytes[2]);
            !behind.any(|byte| matches!(byte, b'.' | b'e' | b'E'))
        })
    }

    /// Returns the type of the value at a path.
    ///
    /// Types are looked up only for duplicates, which are rare.
    fn type_at(&self, path: &FieldPath<'_>) -> Option<TypeRef<'a>> {
        match path.last() {
            None => self.typed,
            Some((above, Step::Member(name))) => self.type_at(above)?.member(name),
            Some((above, Step::Item(_))) => self.type_at(above).map(TypeRef::item),
        }
    }

    /// Reads a duplicate member into the value of the one before.
    fn replace(&mut self, path: &FieldPath<'_>, earlier: &Value, value: &mut Value) {
        let typed = self.type_at(path);
        let decode_error =
            typed.and_then(|typed| schema::merge_duplicate(typed, earlier, value).err());
        self.decode_error = self.decode_error.take().or(decode_error);
    }
}

struct Reader<'a, 'b> {
    path: &'a FieldPath<'a>,
    found: &'a mut Found<'b>,
}

impl<'de> DeserializeSeed<'de> for Reader<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        if value == 0.0 && value.is_sign_negative() && self.found.has_integer_zero() {
            return Ok(0.into());
        }
        self.found.has_float = true;
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut read = Vec::new();
        loop {
            let path = self.path.item(read.len());
            let seed = Reader {
                path: &path,
                found: self.found,
            };
            match items.next_element_seed(seed)? {
                Some(value) => read.push(value),
                None => return Ok(Value::Array(read)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let path = self.path.member(&name);
            // The path of this member is put in front of a decode error that was found below it, not of an earlier one.
            let was_fit = self.found.decode_error.is_none();
            if read.contains_key(&name) {
                self.found.strict_errors.add_duplicate(&path);
            }
            let seed = Reader {
                path: &path,
                found: self.found,
            };
            let mut value = members.next_value_seed(seed)?;
            if let Some(earlier) = read.get(&name) {
                self.found.replace(&path, earlier, &mut value);
            }
            if was_fit && let Some(decode_error) = self.found.decode_error.take() {
                let typed = self.found.type_at(self.path);
                self.found.decode_error = typed.map(|typed| decode_error.below(typed, &name));
            }
            read.insert(name, value);
        }
        Ok(Value::Object(read))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn members_that_are_there_twice_are_reported_by_their_paths() {
        let document = Document::json(br#"{"data":{"a":1,"a":2},"l":[{"x":1,"x":1}]}"#).unwrap();
        let reported = [r#"duplicate field "data.a""#, r#"duplicate field "l[0].x""#];
        assert_eq!(document.duplicates.warnings(), reported);
        assert_eq!(document.value["data"]["a"], 2);
    }

    #[test]
    fn yaml_is_read_as_the_json_it_stands_for() {
        let yaml = b"a: \"1\"\nb: |\n  two\n  lines\nc: [1, true, null]\n";
        let expected = json!({"a": "1", "b": "two\nlines\n", "c": [1, true, null]});
        assert_eq!(Document::yaml(yaml).unwrap().value, expected);
        assert!(Document::yaml(b"a: [").is_err());
        assert_eq!(
            Document::yaml(b"{\"a\": 1}").unwrap().value,
            json!({"a": 1})
        );
    }

    #[test]
    fn numbers_are_integers_where_go_reads_them_as_such() {
        let read = |bytes: &[u8]| Document::json(bytes).unwrap().value;
        assert_eq!(read(b"[-0]"), json!([0]));
        assert!(read(b"[-0.0]")[0].is_f64());
        let yaml = b"[1.0, 1e3, 1e18, 010, 0o17, 0x10, -0, -0.0, 1.5]";
        let expected = json!([1, 1000, 1_000_000_000_000_000_000_i64, 8, 15, 16, 0, 0, 1.5]);
        assert_eq!(Document::yaml(yaml).unwrap().value, expected);
    }

    #[test]
    fn yaml_that_cannot_be_read_is_refused_in_words_of_go() {
        for (yaml, error) in [
            (
                "a: b: c",
                "yaml: mapping values are not allowed in this context",
            ),
            ("{", "yaml: line 1: did not find expected node content"),
            ("{a: [b}", "yaml: did not find expected ',' or ']'"),
            ("a: .inf", "json: unsupported value: +Inf"),
        ] {
            assert_eq!(Document::yaml(yaml.as_bytes()).unwrap_err(), error);
        }
    }

    #[test]
    fn yaml_has_the_values_of_go() {
        for (yaml, expected) in [
            ("yes: 0644\n0x10: on\n", json!({"true": 420, "16": true})),
            ("a: |\n  one\n  two", json!({"a": "one\ntwo"})),
            ("a: 1e400\n", json!({"a": "1e400"})),
            ("{\"a\": 1e400}", json!({"a": "1e400"})),
            ("", Value::Null),
        ] {
            assert_eq!(
                Document::yaml(yaml.as_bytes()).unwrap().value,
                expected,
                "{yaml}"
            );
        }
    }

    #[test]
    fn a_key_that_is_merged_twice_is_found() {
        let document = Document::yaml(b"a: &x {b: 1}\nc:\n  <<: *x\n  b: 2\n").unwrap();
        let line = "line 4: key \"b\" already set in map";
        assert_eq!(
            document.duplicates,
            Duplicates::Lines(vec![line.to_owned()])
        );
    }

    #[test]
    fn what_follows_a_document_of_yaml_is_not_read() {
        let document = Document::yaml(b"{\"a\": 1}x").unwrap();
        assert_eq!(document.value, json!({"a": 1}));
    }

    #[test]
    fn a_key_that_is_in_yaml_twice_is_found_by_its_line() {
        for yaml in ["x: 1\na:\n  b: 1\n  b: 2\n", "{x: 1,\n\na: {b: 3,\n b: 2}}"] {
            let document = Document::yaml(yaml.as_bytes()).unwrap();
            assert_eq!(document.value, json!({"x": 1, "a": {"b": 2}}));
            let line = "line 4: key \"b\" already set in map";
            assert_eq!(
                document.duplicates,
                Duplicates::Lines(vec![line.to_owned()])
            );
        }
    }

    #[test]
    fn documents_that_nest_too_deep_are_refused_as_go_refuses_them() {
        for depth in [DEEPEST, DEEPEST + 1, 500, 10_000] {
            let json = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            let read = Document::json(json.as_bytes()).map(drop);
            if depth <= DEEPEST {
                assert_eq!(read, Ok(()));
            } else {
                assert_eq!(
                    read.unwrap_err(),
                    "invalid character '[' exceeded max depth"
                );
            }
            for yaml in [format!("a: {json}"), format!("{}a", "- ".repeat(depth + 1))] {
                let error = Document::yaml(yaml.as_bytes()).unwrap_err();
                assert_eq!(error, "yaml: exceeded max depth of 10000", "{depth}");
            }
        }
    }

    #[test]
    fn yaml_that_may_nest_deep_is_told_by_brackets_columns_and_aliases() {
        let columns = format!("a:\n{}b", "- ".repeat(30));
        let brackets = format!("{}{}", "[".repeat(30), "]".repeat(30));
        for yaml in [columns.as_str(), &brackets, "a: &x [1]\nb: *x\n"] {
            assert!(is_deep_yaml(yaml.as_bytes()), "{yaml}");
        }
        assert!(!is_deep_yaml(b"kind: ConfigMap\ndata:\n  a: b & c\n"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_reading_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Document::json(&bytes);
            let _ = Document::yaml(&bytes);
        }

        #[test]
        fn json_is_read_as_serde_does(text in "[\\[\\]{}:,\"a-c0-9. ]{0,30}") {
            let ours = Document::json(text.as_bytes()).ok().map(|document| document.value);
            prop_assert_eq!(ours, serde_json::from_str::<Value>(&text).ok());
        }
    }
}
