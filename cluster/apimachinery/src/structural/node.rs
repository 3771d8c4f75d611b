//! A compiled node of a schema.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Map, Value};

use super::formats;
use super::rules::Rule;
use crate::go_regex;

/// What a schema says about one value.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// The types a value may have; any, if there are none.
    pub(super) types: Vec<String>,
    pub(super) nullable: bool,
    /// A format the server knows for the type.
    pub(super) format: Option<String>,
    pub(super) default: Option<Value>,
    pub(super) shape: Shape,
    pub(super) bounds: Bounds,
    pub(super) junctors: Junctors,
    pub(super) extensions: Extensions,
    pub(super) rules: Vec<Rule>,
}

/// What is below a value.
#[derive(Debug, Default)]
pub(super) struct Shape {
    pub(super) properties: BTreeMap<String, Node>,
    pub(super) additional: Option<Additional>,
    pub(super) items: Option<Box<Node>>,
}

/// What members beside the properties may be.
#[derive(Debug)]
pub(super) enum Additional {
    Any(bool),
    Schema(Box<Node>),
}

/// The limits of a value itself.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    pub(super) choices: Vec<Value>,
    pub(super) maximum: Option<f64>,
    pub(super) exclusive_maximum: bool,
    pub(super) minimum: Option<f64>,
    pub(super) exclusive_minimum: bool,
    pub(super) multiple_of: Option<f64>,
    pub(super) max_length: Option<i64>,
    pub(super) min_length: Option<i64>,
    pub(super) pattern: Option<Pattern>,
    pub(super) max_items: Option<i64>,
    pub(super) min_items: Option<i64>,
    pub(super) unique_items: bool,
    pub(super) max_properties: Option<i64>,
    pub(super) min_properties: Option<i64>,
    pub(super) required: Vec<String>,
}

/// A regular expression as it was written, and compiled.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) text: String,
    pub(super) compiled: Result<Regex, String>,
}

/// Schemas that apply to the same value.
#[derive(Debug, Default)]
pub(super) struct Junctors {
    pub(super) all_of: Vec<Node>,
    pub(super) any_of: Vec<Node>,
    pub(super) one_of: Vec<Node>,
    pub(super) not: Option<Box<Node>>,
}

/// What Kubernetes adds to schemas.
#[derive(Debug, Default)]
pub(super) struct Extensions {
    pub(super) preserve: bool,
    pub(super) embedded: bool,
    pub(super) int_or_string: bool,
    pub(super) list_type: Option<String>,
    pub(super) list_map_keys: Vec<String>,
}

impl Node {
    /// Compiles a schema; parts of a wrong type count as absent.
    pub(super) fn compile(schema: &Value) -> Self {
        Self::compile_as(schema, Form::Whole)
    }

    /// Compiles a schema as the server does to check its defaults.
    // `ToKubeOpenAPI`, which neither strips formats nor knows the types of integers or strings.
    pub(super) fn compile_structural(schema: &Value) -> Self {
        Self::compile_as(schema, Form::Structural)
    }

    /// Compiles a schema for the check of its own rules; those below it are left out.
    ///
    /// Each schema is checked by itself, and would compile the rules below it again.
    pub(super) fn compile_without_rules_below(schema: &Value) -> Self {
        let mut node = Self::compile_as(schema, Form::WithoutRules);
        node.rules = Rule::compile_all(schema);
        node
    }

    fn compile_as(schema: &Value, form: Form) -> Self {
        let empty = Map::new();
        let object = schema.as_object().unwrap_or(&empty);
        let members = Members { object, form };
        let extensions = Extensions::of(&members);
        let is_whole = form != Form::Structural;
        let types: Vec<String> = match members.text("type") {
            // Such a schema has no `type` of its own, because it could name only one of the two.
            _ if is_whole && extensions.int_or_string => {
                vec!["integer".to_owned(), "string".to_owned()]
            }
            None | Some("") => Vec::new(),
            Some(name) => vec![name.to_owned()],
        };
        let format = members.text("format");
        Self {
            format: format
                // An unknown format would change how a wrong type is worded, so it is dropped here.
                .filter(|format| !format.is_empty())
                .filter(|format| !is_whole || formats::is_known(&types, format))
                .map(str::to_owned),
            types,
            nullable: members.flag("nullable"),
            // A default of null is none, as in `defaulting.Default`.
            default: members
                .object
                .get("default")
                .filter(|d| !d.is_null())
                .cloned(),
            shape: Shape::of(&members),
            bounds: Bounds::of(&members),
            junctors: Junctors::of(&members),
            extensions,
            rules: match form {
                Form::WithoutRules => Vec::new(),
                Form::Whole | Form::Structural => Rule::compile_all(schema),
            },
        }
    }

    /// Returns the schema of a member, declared or additional.
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        let declared = self.shape.properties.get(name);
        declared.or_else(|| self.shape.additional_schema())
    }

    pub(super) fn is_type(&self, name: &str) -> bool {
        self.types.iter().any(|each| each == name)
    }

    /// Returns whether this node or any below it has a rule.
    pub(super) fn has_rules(&self) -> bool {
        !self.rules.is_empty() || self.below().any(Self::has_rules)
    }

    /// Returns whether this node or any below it is a whole resource.
    pub(super) fn has_resources(&self) -> bool {
        self.extensions.embedded || self.below().any(Self::has_resources)
    }

    // Rules and resources below `allOf` and its like are not allowed in a structural schema, so those are left out.
    fn below(&self) -> impl Iterator<Item = &Self> {
        let shape = &self.shape;
        let items = shape.items.as_deref();
        shape
            .properties
            .values()
            .chain(items)
            .chain(shape.additional_schema())
    }
}

impl Shape {
    fn of(members: &Members<'_>) -> Self {
        let node = |schema: &Value| Node::compile_as(schema, members.form);
        let compile = |(name, schema): (&String, &Value)| (name.clone(), node(schema));
        let properties = members.object.get("properties").and_then(Value::as_object);
        let additional = match members.object.get("additionalProperties") {
            // Absent differs from `true`: without it, unknown members are pruned.
            None | Some(Value::Null) => None,
            Some(Value::Bool(allowed)) => Some(Additional::Any(*allowed)),
            Some(schema) => Some(Additional::Schema(Box::new(node(schema)))),
        };
        Self {
            properties: properties.into_iter().flatten().map(compile).collect(),
            additional,
            items: members.schema("items"),
        }
    }

    pub(super) fn additional_schema(&self) -> Option<&Node> {
        match &self.additional {
            Some(Additional::Schema(node)) => Some(node),
            _ => None,
        }
    }
}

impl Bounds {
    fn of(members: &Members<'_>) -> Self {
        let pattern = members.text("pattern").filter(|text| !text.is_empty());
        Self {
            choices: members.array("enum").to_vec(),
            maximum: members.number("maximum"),
            exclusive_maximum: members.flag("exclusiveMaximum"),
            minimum: members.number("minimum"),
            exclusive_minimum: members.flag("exclusiveMinimum"),
            multiple_of: members.number("multipleOf"),
            max_length: members.count("maxLength"),
            min_length: members.count("minLength"),
            pattern: pattern.map(Pattern::new),
            max_items: members.count("maxItems"),
            min_items: members.count("minItems"),
            unique_items: members.flag("uniqueItems"),
            max_properties: members.count("maxProperties"),
            min_properties: members.count("minProperties"),
            required: members.texts("required"),
        }
    }
}

impl Pattern {
    pub(super) fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            // A bad pattern is kept, since it fails values when they are checked, as in Go, and not the schema.
            compiled: go_regex::compile(text),
        }
    }
}

impl Junctors {
    fn of(members: &Members<'_>) -> Self {
        let node = |schema: &Value| Node::compile_as(schema, members.form);
        let compile = |name| members.array(name).iter().map(node).collect();
        Self {
            all_of: compile("allOf"),
            any_of: compile("anyOf"),
            one_of: compile("oneOf"),
            not: members.schema("not"),
        }
    }
}

impl Extensions {
    fn of(members: &Members<'_>) -> Self {
        let text = |name| members.text(name).map(str::to_owned);
        Self {
            preserve: members.flag("x-kubernetes-preserve-unknown-fields"),
            embedded: members.flag("x-kubernetes-embedded-resource"),
            int_or_string: members.flag("x-kubernetes-int-or-string"),
            list_type: text("x-kubernetes-list-type"),
            list_map_keys: members.texts("x-kubernetes-list-map-keys"),
        }
    }
}

/// What a schema is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// To check objects.
    Whole,
    /// To check defaults.
    Structural,
    /// To check the types of rules above.
    WithoutRules,
}

/// The members of a schema, read leniently.
struct Members<'a> {
    object: &'a Map<String, Value>,
    form: Form,
}

impl<'a> Members<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        self.object.get(name)?.as_str()
    }

    fn flag(&self, name: &str) -> bool {
        self.object
            .get(name)
            .and_then(Value::as_bool)
            .unwrap_or(false)
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.object.get(name)?.as_f64()
    }

    fn count(&self, name: &str) -> Option<i64> {
        self.object.get(name)?.as_i64()
    }

    fn array(&self, name: &str) -> &'a [Value] {
        let array = self.object.get(name).and_then(Value::as_array);
        array.map_or(&[], Vec::as_slice)
    }

    fn texts(&self, name: &str) -> Vec<String> {
        let texts = self.array(name).iter().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    }

    fn schema(&self, name: &str) -> Option<Box<Node>> {
        let schema = self.object.get(name).filter(|schema| schema.is_object())?;
        Some(Box::new(Node::compile_as(schema, self.form)))
    }
}
