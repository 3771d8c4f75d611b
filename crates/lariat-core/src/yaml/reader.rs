//! Reading a document.

use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};
use serde_json::{Map, Value};

use super::scalar::{self, Scalar};

/// Text that is not the YAML that kubectl reads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}, see line {line}")]
pub struct YamlError {
    line: usize,
    problem: String,
}

impl YamlError {
    /// Returns the line, counted from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    fn new(place: &Span, problem: impl Into<String>) -> Self {
        Self {
            line: place.start.line().max(1),
            problem: problem.into(),
        }
    }
}

impl From<ScanError> for YamlError {
    fn from(error: ScanError) -> Self {
        Self {
            line: error.marker().line().max(1),
            problem: error.info(),
        }
    }
}

/// The namespace of the tags that YAML defines, such as `!!str`.
const NAMESPACE: &str = "tag:yaml.org,2002:";

/// How many values anchors keep and aliases add at most, so that a short text cannot use up the memory.
const MOST_ALIASED: usize = 1_000_000;

/// How many bytes of a text count as a further value.
const TEXT: usize = 32;

/// Reads the first document of a text as kubectl does; an empty text is `null`.
///
/// Members that appear twice have their last value. JSON is read too. The error does not contain values of the text.
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
/// Fails if the text is not YAML, has more than 255 levels, or has a number, key or tag that JSON cannot express.
pub fn read(text: &str) -> Result<Value, YamlError> {
    // The reader of JSON is faster, and accepts tabs, which YAML does not.
    if text.trim_start().starts_with(['{', '['])
        && let Ok(value) = serde_json::from_str(text)
    {
        return Ok(value);
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut document = Document::default();
    for event in Parser::new_from_str(text) {
        let (event, place) = event?;
        let event = match event {
            Event::DocumentEnd => break,
            // The parser ends the last line of a block, go-yaml does not.
            Event::Scalar(lines, style, anchor, tag) if is_unended(text, style, &place) => {
                let lines = lines.strip_suffix('\n').unwrap_or(&lines).to_owned();
                Event::Scalar(lines.into(), style, anchor, tag)
            }
            event => event,
        };
        document.take(event, &place)?;
    }
    Ok(document.root.unwrap_or(Value::Null))
}

/// Returns whether a text is a block whose last line is the last one of the file and has no end.
fn is_unended(text: &str, style: ScalarStyle, place: &Span) -> bool {
    let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
    is_block && !text.ends_with('\n') && place.end.byte_offset() == Some(text.len())
}

/// The part of a document that has been read.
#[derive(Default)]
struct Document {
    root: Option<Value>,
    open: Vec<Open>,
    /// Values by the number of their anchor, with their size.
    anchors: HashMap<usize, (Value, usize)>,
    aliased: usize,
}

/// A list or mapping whose end has not been read.
struct Open {
    anchor: usize,
    content: Content,
}

enum Content {
    List(Vec<Value>),
    Mapping {
        members: Map<String, Value>,
        key: Option<Key>,
    },
}

enum Key {
    Name(String),
    /// `<<`, whose value is a mapping, or a list of mappings, that is merged.
    Merge,
}

/// A value, and whether it is an unquoted `<<`.
struct Node {
    value: Value,
    is_merge: bool,
}

impl Document {
    fn take(&mut self, event: Event<'_>, place: &Span) -> Result<(), YamlError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let node = scalar_node(&text, style, tag.as_deref(), place)?;
                self.put(node, anchor, place)
            }
            Event::Alias(anchor) => {
                let known = self.anchors.get(&anchor).cloned();
                let (value, size) = known.ok_or_else(|| {
                    YamlError::new(place, "an anchor contains an alias of itself")
                })?;
                self.repeat(size, place)?;
                self.put(value.into(), 0, place)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open(anchor, Content::List(Vec::new()));
                Ok(())
            }
            Event::MappingStart(_, anchor, _) => {
                let (members, key) = (Map::new(), None);
                self.open(anchor, Content::Mapping { members, key });
                Ok(())
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(place),
            // The beginnings and ends of the stream and its documents, and comments.
            _ => Ok(()),
        }
    }

    fn open(&mut self, anchor: usize, content: Content) {
        self.open.push(Open { anchor, content });
    }

    fn close(&mut self, place: &Span) -> Result<(), YamlError> {
        let Some(Open { anchor, content }) = self.open.pop() else {
            return Ok(());
        };
        let value = match content {
            Content::List(items) => Value::Array(items),
            Content::Mapping { members, .. } => Value::Object(members),
        };
        self.put(value.into(), anchor, place)
    }

    /// Counts copied values.
    fn repeat(&mut self, size: usize, place: &Span) -> Result<(), YamlError> {
        self.aliased += size;
        if self.aliased > MOST_ALIASED {
            return Err(YamlError::new(place, "the aliases repeat too many values"));
        }
        Ok(())
    }

    /// Adds a value to the list or mapping that is open.
    fn put(&mut self, node: Node, anchor: usize, place: &Span) -> Result<(), YamlError> {
        if anchor != 0 {
            let size = size(&node.value);
            // Anchors within anchors are copied with each of them.
            self.repeat(size, place)?;
            self.anchors.insert(anchor, (node.value.clone(), size));
        }
        let Some(Open { content, .. }) = self.open.last_mut() else {
            self.root = Some(node.value);
            return Ok(());
        };
        match content {
            Content::List(items) => items.push(node.value),
            Content::Mapping { members, key } => match key.take() {
                None => *key = Some(key_of(node, place)?),
                Some(Key::Name(name)) => {
                    members.insert(name, node.value);
                }
                Some(Key::Merge) => merge(members, node.value, place)?,
            },
        }
        Ok(())
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        Self {
            value,
            is_merge: false,
        }
    }
}

/// Returns how many values a value consists of; long texts count as several.
fn size(value: &Value) -> usize {
    let within: usize = match value {
        Value::String(text) => text.len() / TEXT,
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(members) => {
            let members = members.iter();
            members
                .map(|(name, value)| name.len() / TEXT + size(value))
                .sum()
        }
        _ => 0,
    };
    within + 1
}

fn scalar_node(
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    place: &Span,
) -> Result<Node, YamlError> {
    let is_plain = style == ScalarStyle::Plain;
    let known = tag.and_then(|tag| tag.suffix_in_namespace(NAMESPACE));
    let value = match (tag, known.as_deref()) {
        (None, _) if is_plain && text == "<<" => {
            let value = text.into();
            return Ok(Node {
                value,
                is_merge: true,
            });
        }
        (None, _) if is_plain => resolved(text, place)?,
        (_, Some("bool" | "int" | "float" | "null")) => resolved(text, place)?,
        (_, Some("binary")) => return Err(YamlError::new(place, "a value has the tag !!binary")),
        // Quoted, or with a tag that means nothing here.
        _ => text.into(),
    };
    Ok(value.into())
}

fn resolved(text: &str, place: &Span) -> Result<Value, YamlError> {
    match scalar::resolve(text) {
        Scalar::Value(value) => Ok(value),
        Scalar::NotFinite => Err(YamlError::new(place, "a number is not finite")),
    }
}

/// Returns the name of a member, as Go makes it of a key.
fn key_of(node: Node, place: &Span) -> Result<Key, YamlError> {
    if node.is_merge {
        return Ok(Key::Merge);
    }
    match node.value {
        Value::String(name) => Ok(Key::Name(name)),
        Value::Bool(flag) => Ok(Key::Name(flag.to_string())),
        Value::Number(number) => Ok(Key::Name(number.to_string())),
        _ => Err(YamlError::new(
            place,
            "a key is neither a text nor a number nor a flag",
        )),
    }
}

/// Merges the value of `<<` into a mapping, as go-yaml does: over members before it.
fn merge(members: &mut Map<String, Value>, value: Value, place: &Span) -> Result<(), YamlError> {
    match value {
        Value::Object(more) => members.extend(more),
        // Earlier mappings take precedence.
        Value::Array(items) => {
            for item in items.into_iter().rev() {
                let Value::Object(more) = item else {
                    return Err(YamlError::new(place, "a merged value is not a mapping"));
                };
                members.extend(more);
            }
        }
        _ => return Err(YamlError::new(place, "a merged value is not a mapping")),
    }
    Ok(())
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
            "a: !!str 5\nb: !!int '5'\nc: !own 5\n",
            json!({"a": "5", "b": 5, "c": "5"}),
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
    fn anchors_within_anchors_are_bounded() {
        let open: String = (0..200).map(|level| format!("&a{level} [")).collect();
        let items = "1,".repeat(100_000);
        let text = format!("{open}{items}{}", "]".repeat(200));
        let error = read(&text).map(drop).unwrap_err().to_string();
        assert!(error.contains("aliases repeat too many values"), "{error}");
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
