//! The value of a document.
//!
//! Source: `decoder` in `go.yaml.in/yaml/v2`.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::error::{TOO_DEEP, YamlError, at_line};
use super::scalar::{self, Scalar, Type};
use super::tree::{Content, Meaning, Node, Tree};

/// A document, and its repeated keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The value; a repeated key has its last value.
    pub value: Value,
    /// The keys that their mapping had already, in the order in which Go reports them.
    pub repeated_keys: Vec<RepeatedKey>,
}

/// A key that its mapping had already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatedKey {
    /// The line of its value, counted from 1.
    pub line: usize,
    /// The key: a text, a number or a flag.
    pub key: Value,
}

/// The largest number of levels of a value.
const DEEPEST: usize = 255;

/// The largest number of bytes that aliases repeat.
///
/// Without it a short text could use up the memory.
const MOST_REPEATED: usize = 32 * 1024 * 1024;

/// Reads the value of a document; an empty one is `null`.
pub(super) fn decode(tree: &Tree<'_>) -> Result<Document, YamlError> {
    let mut decoder = Decoder {
        nodes: &tree.nodes,
        // The document counts too.
        decoded: 1,
        aliased: 0,
        repeated: 0,
        depth: 0,
        aliases: Vec::new(),
        repeated_keys: Vec::new(),
    };
    let value = tree.root.map_or(Ok(Value::Null), |at| decoder.value(at))?;
    Ok(Document {
        value,
        repeated_keys: decoder.repeated_keys,
    })
}

struct Decoder<'t, 'a> {
    nodes: &'t [Node<'a>],
    /// How many nodes were decoded, those below aliases each time.
    decoded: usize,
    /// How many of them were below an alias.
    aliased: usize,
    /// How many bytes of texts were below an alias.
    repeated: usize,
    depth: usize,
    /// The aliases that are being decoded.
    aliases: Vec<usize>,
    repeated_keys: Vec<RepeatedKey>,
}

/// A mapping that is being read.
#[derive(Default)]
struct Mapping {
    members: Map<String, Value>,
    /// The keys that are not texts.
    others: HashSet<Value>,
    /// The names of those that no text key has had yet.
    names_of_others: HashSet<String>,
}

impl<'t> Decoder<'t, '_> {
    fn value(&mut self, at: usize) -> Result<Value, YamlError> {
        self.count(at)?;
        let nodes = self.nodes;
        match &nodes[at].content {
            Content::Scalar { text, meaning } => self.scalar(at, text, *meaning),
            Content::List(items) => self.below(at, |decoder| {
                let items = items.iter().map(|item| decoder.value(*item));
                items.collect::<Result<_, _>>().map(Value::Array)
            }),
            Content::Mapping(entries) => {
                let mut mapping = Mapping::default();
                self.below(at, |decoder| decoder.entries(entries, &mut mapping))?;
                Ok(Value::Object(mapping.members))
            }
            Content::Alias(anchored) => self.alias(at, |decoder| decoder.value(*anchored)),
        }
    }

    fn scalar(&self, at: usize, text: &str, meaning: Meaning) -> Result<Value, YamlError> {
        match meaning {
            Meaning::Text | Meaning::Merge => Ok(text.into()),
            Meaning::Binary => {
                let go = "!!binary value contains invalid base64 data";
                Err(self.error(at, "a value has the tag !!binary", go))
            }
            Meaning::Tagged(wanted) if !wanted.takes(Type::of(text)) => {
                let (found, wanted) = (Type::of(text).tag(), wanted.tag());
                let go = format!("cannot decode {found} `{text}` as a {wanted}");
                Err(self.error(at, "a value is not of the type of its tag", &go))
            }
            Meaning::Resolved | Meaning::Tagged(_) => match scalar::resolve(text) {
                Scalar::Value(value) => Ok(value),
                Scalar::NotFinite(number) => {
                    let go = format!("json: unsupported value: {number}");
                    let line = self.nodes[at].line;
                    Err(YamlError::new(line, "a number is not finite", go))
                }
            },
        }
    }

    /// Decodes what is in a list or mapping, or behind an alias.
    fn below<T>(
        &mut self,
        at: usize,
        decode: impl FnOnce(&mut Self) -> Result<T, YamlError>,
    ) -> Result<T, YamlError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            let problem = "a value has more than 255 levels";
            let go = format!("yaml: {}", at_line(self.nodes[at].line, TOO_DEEP));
            return Err(YamlError::new(self.nodes[at].line, problem, go));
        }
        let decoded = decode(self)?;
        self.depth -= 1;
        Ok(decoded)
    }

    fn alias<T>(
        &mut self,
        at: usize,
        decode: impl FnOnce(&mut Self) -> Result<T, YamlError>,
    ) -> Result<T, YamlError> {
        if self.aliases.contains(&at) {
            let problem = "an anchor contains an alias of itself";
            return Err(self.error(at, problem, "anchor value contains itself"));
        }
        self.aliases.push(at);
        let decoded = decode(self)?;
        self.aliases.pop();
        Ok(decoded)
    }

    /// Reads entries into a mapping, which may have others already.
    fn entries(&mut self, entries: &'t [usize], mapping: &mut Mapping) -> Result<(), YamlError> {
        for entry in entries.chunks_exact(2) {
            let (key, value) = (entry[0], entry[1]);
            if self.is_merge(key) {
                self.merge(value, mapping)?;
                continue;
            }
            let key = self.key(key)?;
            let decoded = self.value(value)?;
            if let Some(key) = mapping.insert(key, decoded) {
                let line = self.nodes[value].line;
                self.repeated_keys.push(RepeatedKey { line, key });
            }
        }
        Ok(())
    }

    fn key(&mut self, at: usize) -> Result<Value, YamlError> {
        let key = self.value(at)?;
        let problem = "a key is neither a text nor a number nor a flag";
        match &key {
            Value::Null => {
                let go = "unsupported map key of type: %!s(<nil>), key: <nil>";
                Err(YamlError::new(self.nodes[at].line, problem, go))
            }
            Value::Array(_) | Value::Object(_) => Err(self.error(at, problem, "invalid map key")),
            _ => Ok(key),
        }
    }

    fn is_merge(&self, at: usize) -> bool {
        let content = &self.nodes[at].content;
        matches!(content, Content::Scalar { meaning, .. } if *meaning == Meaning::Merge)
    }

    /// Merges the value of `<<` into a mapping, whose earlier members it replaces.
    fn merge(&mut self, at: usize, mapping: &mut Mapping) -> Result<(), YamlError> {
        let nodes = self.nodes;
        match &nodes[at].content {
            // Earlier mappings take precedence.
            Content::List(items) => {
                let mut items = items.iter().rev();
                items.try_for_each(|item| self.merge_mapping(*item, mapping))
            }
            _ => self.merge_mapping(at, mapping),
        }
    }

    fn merge_mapping(&mut self, at: usize, mapping: &mut Mapping) -> Result<(), YamlError> {
        self.count(at)?;
        let nodes = self.nodes;
        match &nodes[at].content {
            Content::Mapping(entries) => {
                self.below(at, |decoder| decoder.entries(entries, mapping))
            }
            Content::Alias(anchored) => {
                self.alias(at, |decoder| decoder.merge_mapping(*anchored, mapping))
            }
            _ => {
                let go = "map merge requires map or sequence of maps as the value";
                Err(self.error(at, "a merged value is not a mapping", go))
            }
        }
    }

    /// Counts a node that is decoded.
    fn count(&mut self, at: usize) -> Result<(), YamlError> {
        self.decoded += 1;
        if !self.aliases.is_empty() {
            self.aliased += 1;
            if let Content::Scalar { text, .. } = &self.nodes[at].content {
                self.repeated += text.len();
            }
        }
        if is_excessive(self.aliased, self.decoded) || self.repeated > MOST_REPEATED {
            let go = "document contains excessive aliasing";
            return Err(self.error(at, "the aliases repeat too many values", go));
        }
        Ok(())
    }

    fn error(&self, at: usize, problem: &str, go: &str) -> YamlError {
        YamlError::new(self.nodes[at].line, problem, format!("yaml: {go}"))
    }
}

impl Mapping {
    /// Adds a member; returns its key if it was there already.
    fn insert(&mut self, key: Value, value: Value) -> Option<Value> {
        if let Value::String(name) = key {
            let is_repeated =
                self.members.contains_key(&name) && !self.names_of_others.remove(&name);
            let repeated = is_repeated.then(|| name.clone().into());
            self.members.insert(name, value);
            return repeated;
        }
        let name = key.to_string();
        if !self.members.contains_key(&name) {
            self.names_of_others.insert(name.clone());
        }
        self.members.insert(name, value);
        (!self.others.insert(key.clone())).then_some(key)
    }
}

/// Returns whether aliases are a suspiciously large part of a document.
///
/// Source: `allowedAliasRatio`.
fn is_excessive(aliased: usize, decoded: usize) -> bool {
    const LOW: usize = 400_000;
    const HIGH: usize = 4_000_000;
    #[expect(
        clippy::cast_precision_loss,
        reason = "the counts are far below 2^53, and only their ratio matters"
    )]
    let share = |part: usize, whole: usize| part as f64 / whole as f64;
    let allowed = match decoded {
        ..=LOW => 0.99,
        HIGH.. => 0.10,
        _ => 0.99 - 0.89 * share(decoded - LOW, HIGH - LOW),
    };
    aliased > 100 && decoded > 1000 && share(aliased, decoded) > allowed
}
