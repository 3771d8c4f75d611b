//! Reading documents: JSON, which may say things twice, and YAML.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use lariat_apimachinery::go_json;
use lariat_apimachinery::nesting::{DEEPEST, is_deeper};
use lariat_apimachinery::schema::{self, DecodeError, FieldPath, Step, StrictErrors, TypeRef};
use memchr::memchr2_iter;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::options::DuplicateKeyPolicy;

use super::duplicate_keys;

/// A document, and the members that were there more than once.
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
        let value = value
            .map_err(|error| go_json::syntax_error(bytes).unwrap_or_else(|| error.to_string()))?;
        if is_deeper(&value, DEEPEST) {
            return Err("exceeded max depth".to_owned());
        }
        let duplicates = Duplicates::Worded(found.strict_errors.into_sentences());
        let document = Self {
            value,
            duplicates,
            has_float: found.has_float,
        };
        Ok((document, found.decode_error))
    }

    /// Reads YAML, of which JSON is a part.
    pub(crate) fn yaml(bytes: &[u8]) -> Result<Self, String> {
        let mut document = Self::read(bytes)?;
        schema::read_whole_numbers(&mut document.value);
        Ok(document)
    }

    fn read(bytes: &[u8]) -> Result<Self, String> {
        // The reader of JSON is much faster. Only duplicates are left to that of YAML, which words them otherwise.
        let begins_json = bytes.trim_ascii_start().starts_with(b"{");
        if begins_json
            && let Ok(document) = Self::json(bytes)
            && document.duplicates.is_empty()
        {
            return Ok(document);
        }
        let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
        let levels = nesting(text);
        if levels <= SHALLOW {
            read_yaml(text)
        } else if levels <= OVERESTIMATE {
            with_stack(|| read_yaml(text))
        } else {
            Err("exceeded max depth".to_owned())
        }
    }
}

/// The depth of YAML that is read on the present stack.
///
/// The reader takes some kilobytes a level.
const SHALLOW: usize = 20;

/// The estimated depth beyond which YAML is not read.
///
/// Texts inside of a document may look deep, but not as deep as this.
const OVERESTIMATE: usize = 2000;

/// The stack for deeper documents, in bytes.
///
/// The reader itself refuses what is really deeper than [`DEEPEST`]; its parser has to get there.
const STACK: usize = 32 * 1024 * 1024;

/// Returns whether a body nests so deep that it needs a larger stack.
pub(crate) fn is_deep(body: &[u8]) -> bool {
    // Most bodies open so few brackets that they need not be matched.
    memchr2_iter(b'[', b'{', body).nth(SHALLOW).is_some() && brackets(body) > SHALLOW
}

/// Works with a stack that is large enough for the deepest document.
pub(crate) fn with_stack<T>(work: impl FnOnce() -> T) -> T {
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

fn read_yaml(text: &str) -> Result<Document, String> {
    let read = |duplicate_keys| {
        let mut options = serde_saphyr::Options::default();
        options.duplicate_keys = duplicate_keys;
        // Go's reader knows YAML 1.1.
        options.legacy_octal_numbers = true;
        if let Some(budget) = &mut options.budget {
            budget.max_depth = DEEPEST;
        }
        first_document::<Value>(text, options)
    };
    // Strictly first: almost no document has a key twice.
    let strict = read(DuplicateKeyPolicy::Error);
    let (value, twice) = match strict {
        Err(error) if is_duplicate(&error) => (read(DuplicateKeyPolicy::LastWins), Some(error)),
        strict => (strict, None),
    };
    let value = value.map_err(|error| in_words_of_go(&first_line(&error.to_string())))?;
    let lines = twice.map(|error| duplicate_keys::lines(text, &error));
    Ok(Document {
        value,
        duplicates: lines.map_or_else(Duplicates::none, Duplicates::Lines),
        has_float: false,
    })
}

/// Reads the first document of a text, whatever comes behind it, as Go does.
pub(super) fn first_document<T: DeserializeOwned>(
    text: &str,
    options: serde_saphyr::Options,
) -> Result<T, serde_saphyr::Error> {
    let mut first = None;
    // The reader would refuse the rest, so the first document is kept before it looks there.
    let end = serde_saphyr::with_deserializer_from_str_with_options(text, options, |reader| {
        first = Some(T::deserialize(reader)?);
        Ok(())
    });
    match (first, end) {
        (Some(document), _) => Ok(document),
        (None, Err(error)) => Err(error),
        (None, Ok(())) => Err(serde::de::Error::custom("no document")),
    }
}

/// Translates the most frequent errors to those of Go's reader, which counts places otherwise.
fn in_words_of_go(error: &str) -> String {
    let has = |part: &str| error.contains(part);
    let known = if has("mapping values are not allowed in this context") {
        "mapping values are not allowed in this context"
    } else if has("mismatched bracket '['") {
        "did not find expected ',' or ']'"
    } else if has("mismatched bracket '{'") {
        "did not find expected ',' or '}'"
    } else if has("unclosed bracket") {
        "line 1: did not find expected node content"
    } else {
        error.strip_prefix("error: ").unwrap_or(error)
    };
    known.to_owned()
}

fn is_duplicate(error: &serde_saphyr::Error) -> bool {
    let error = error.without_snippet();
    matches!(error, serde_saphyr::Error::DuplicateMappingKey { .. })
}

/// Estimates from above how deep YAML nests.
///
/// Brackets inside of texts count too; texts with so many that stay open are rare.
fn nesting(text: &str) -> usize {
    let indentation = |line: &str| {
        let is_indicator = |c: char| matches!(c, ' ' | '-' | '?' | ':');
        let indented = line.len() - line.trim_start_matches(is_indicator).len();
        // A level takes two columns at least.
        indented.div_ceil(2)
    };
    brackets(text.as_bytes()) + text.lines().map(indentation).max().unwrap_or(0)
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

/// Returns the first line of an error; those that follow show the document.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
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
    fn what_is_no_yaml_is_refused_in_words_of_go() {
        for (yaml, error) in [
            ("a: b: c", "mapping values are not allowed in this context"),
            ("{", "line 1: did not find expected node content"),
            ("{a: [b}", "did not find expected ',' or ']'"),
        ] {
            assert_eq!(Document::yaml(yaml.as_bytes()).unwrap_err(), error);
        }
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
    fn what_nests_too_deep_is_refused() {
        for depth in [DEEPEST, DEEPEST + 1, 500, 10_000] {
            let json = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            assert_eq!(
                Document::json(json.as_bytes()).is_ok(),
                depth <= DEEPEST,
                "{depth}"
            );
            for yaml in [format!("a: {json}"), format!("{}a", "- ".repeat(depth + 1))] {
                assert!(Document::yaml(yaml.as_bytes()).is_err(), "{depth}");
            }
        }
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
