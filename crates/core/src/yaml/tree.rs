//! The nodes of a document.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, Span, Tag, YamlVersion};

use super::error::YamlError;
use super::scalar::Type;

/// The namespace of the tags that YAML defines, such as `!!str`.
const NAMESPACE: &str = "tag:yaml.org,2002:";

/// The nodes of the first document of a text, which refer to each other by index.
#[derive(Default)]
pub(super) struct Tree<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    /// `None` if the document is empty.
    pub(super) root: Option<usize>,
    /// The lists and mappings whose end has not been read, innermost last.
    open: Vec<usize>,
    /// Nodes by the number of their anchor.
    anchors: HashMap<usize, usize>,
}

pub(super) struct Node<'a> {
    /// Counted from 1.
    pub(super) line: usize,
    pub(super) content: Content<'a>,
}

pub(super) enum Content<'a> {
    Scalar {
        text: Cow<'a, str>,
        meaning: Meaning,
    },
    List(Vec<usize>),
    /// Keys and values by turns.
    Mapping(Vec<usize>),
    /// The node that has the anchor.
    Alias(usize),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Quoted, or with a tag that means nothing here.
    Text,
    /// Whatever the text stands for.
    Resolved,
    /// The same, which must be of the type of the tag.
    Tagged(Type),
    /// `<<`, whose value is merged if it is a key.
    Merge,
    /// Base64, which JSON has no value for.
    Binary,
}

impl<'a> Tree<'a> {
    pub(super) fn of(text: &'a str) -> Result<Self, YamlError> {
        let options = granit_parser::options! { emit_unresolved_aliases: true };
        let mut tree = Self::default();
        for event in Parser::new_from_str_with_options(text, options) {
            let (event, place) = event.map_err(|error| YamlError::of_syntax(&error, text))?;
            let line = place.start.line().max(1);
            match event {
                Event::DocumentEnd => break,
                Event::DocumentStart(_, Some(version)) if version != YamlVersion::new(1, 1) => {
                    let problem = "the document is not of YAML 1.1";
                    let go = "yaml: found incompatible YAML document";
                    return Err(YamlError::new(line, problem, go));
                }
                Event::Scalar(lines, style, anchor, tag) if is_block(style) => {
                    let line = line_of_indicator(text, &place);
                    let lines = as_ended(text, lines, &place);
                    tree.take(Event::Scalar(lines, style, anchor, tag), line)?;
                }
                event => tree.take(event, line)?,
            }
        }
        Ok(tree)
    }

    fn take(&mut self, event: Event<'a>, line: usize) -> Result<(), YamlError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let meaning = meaning(&text, style, tag.as_deref());
                self.add(Content::Scalar { text, meaning }, anchor, line);
            }
            Event::Alias(anchor) => self.add(Content::Alias(self.anchors[&anchor]), 0, line),
            Event::UnresolvedAlias(name) => {
                let go = format!("yaml: unknown anchor '{name}' referenced");
                return Err(YamlError::new(line, "an alias has no anchor", go));
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open(Content::List(Vec::new()), anchor, line);
            }
            Event::MappingStart(_, anchor, _) => {
                self.open(Content::Mapping(Vec::new()), anchor, line);
            }
            Event::SequenceEnd | Event::MappingEnd => drop(self.open.pop()),
            // The beginnings and ends of the stream and its documents, and comments.
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, content: Content<'a>, anchor: usize, line: usize) {
        self.add(content, anchor, line);
        self.open.push(self.nodes.len() - 1);
    }

    /// Adds a node to the list or mapping that is open.
    fn add(&mut self, content: Content<'a>, anchor: usize, line: usize) {
        let index = self.nodes.len();
        self.nodes.push(Node { line, content });
        if anchor != 0 {
            self.anchors.insert(anchor, index);
        }
        match self.open.last().map(|open| &mut self.nodes[*open].content) {
            Some(Content::List(nodes) | Content::Mapping(nodes)) => nodes.push(index),
            _ => self.root = Some(index),
        }
    }
}

fn is_block(style: ScalarStyle) -> bool {
    matches!(style, ScalarStyle::Literal | ScalarStyle::Folded)
}

/// Returns the lines of a block, without a line break that the text does not have.
///
/// At the end of the text the parser adds one, go-yaml does not.
fn as_ended<'a>(text: &str, lines: Cow<'a, str>, place: &Span) -> Cow<'a, str> {
    let is_last = !text.ends_with('\n') && place.end.byte_offset() == Some(text.len());
    match lines.strip_suffix('\n').filter(|_| is_last) {
        Some(unended) => unended.to_owned().into(),
        None => lines,
    }
}

/// Returns the line with the indicator of a block, before the place of its content.
fn line_of_indicator(text: &str, place: &Span) -> usize {
    let before = place.start.byte_offset().and_then(|at| text.get(..at));
    let before = before.unwrap_or_default();
    let blank = &before[before.trim_end().len()..];
    let line = place.start.line().max(1);
    line.saturating_sub(blank.matches('\n').count()).max(1)
}

fn meaning(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> Meaning {
    let is_plain = style == ScalarStyle::Plain;
    let known = tag.and_then(|tag| tag.suffix_in_namespace(NAMESPACE));
    match (tag, known.as_deref()) {
        (None, _) if is_plain && text == "<<" => Meaning::Merge,
        (None, _) if is_plain => Meaning::Resolved,
        (_, Some("bool")) => Meaning::Tagged(Type::Bool),
        (_, Some("int")) => Meaning::Tagged(Type::Int),
        (_, Some("float")) => Meaning::Tagged(Type::Float),
        (_, Some("null")) => Meaning::Tagged(Type::Null),
        (_, Some("binary")) => Meaning::Binary,
        _ => Meaning::Text,
    }
}
