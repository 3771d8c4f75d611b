//! JSON paths of printer columns and scale subresources.
//!
//! An example is `.status.conditions[?(@.type=="Ready")].status`.
//!
//! Source: `k8s.io/client-go/util/jsonpath`, with missing keys allowed. Unlike there, a path is bounded, because it
//! comes from a CustomResourceDefinition: `Limits` bounds reading it, and `Search` following it.

mod search;

use std::fmt;

use serde_json::Value;

use self::search::Search;

/// The deepest nesting of filters.
///
/// Reading and following a path recurse once for each level.
// Columns in use have one filter, at times one inside of another; this is far beyond both.
const DEEPEST: usize = 32;

/// The most segments of a path, including those of its filters.
///
/// Following a path recurses once for each.
const MOST_SEGMENTS: usize = 256;

/// A parsed JSONPath.
///
/// ```
/// use lariat_apimachinery::structural::json_path::JsonPath;
/// use serde_json::json;
///
/// let path = JsonPath::parse(r#".status.conditions[?(@.type=="Ready")].status"#)?;
/// let object = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
/// assert_eq!(path.first(&object), Some(&json!("True")));
/// assert_eq!(path.first(&json!({})), None);
/// # Ok::<(), lariat_apimachinery::structural::json_path::PathError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JsonPath {
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq)]
enum Segment {
    Member(String),
    /// All members or elements.
    Wildcard,
    /// Whatever lies below, itself included, that has something in it.
    Descend,
    /// From, to and step of a range of elements; negative ends count from the end.
    Slice(Option<i64>, Option<i64>, i64),
    Index(i64),
    /// What each of some paths leads to.
    Union(Vec<JsonPath>),
    Filter(Filter),
}

#[derive(Debug, Clone, PartialEq)]
struct Filter {
    left: Operand,
    /// The operator and its right side; `None` if the filter checks existence only.
    compared: Option<(&'static str, Operand)>,
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Path(JsonPath),
    Literal(Value),
}

/// Why a path cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathError {
    /// It cannot be read.
    Malformed(String),
    /// It has more steps or levels than a path may have here.
    TooLarge(String),
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(text) | Self::TooLarge(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for PathError {}

impl From<PathError> for String {
    fn from(error: PathError) -> Self {
        error.to_string()
    }
}

impl From<String> for PathError {
    fn from(text: String) -> Self {
        Self::Malformed(text)
    }
}

/// The comparisons of a filter, longer ones before those they begin with.
const OPERATORS: [&str; 6] = ["==", "!=", "<=", ">=", "<", ">"];

impl JsonPath {
    /// Parses a path, with or without the braces of a template around it.
    ///
    /// # Errors
    ///
    /// What is wrong with it, or that it is too long.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        Limits::new().path(text)
    }

    /// Parses member names separated by dots, without any other syntax.
    ///
    /// # Errors
    ///
    /// It has too many names.
    pub fn dotted(text: &str) -> Result<Self, PathError> {
        let mut limits = Limits::new();
        // The paths of a scale subresource have no brackets or escapes, so a dot always separates.
        let names = text.strip_prefix('.').unwrap_or(text).split('.');
        let segments = names
            .map(|name| limits.segment(Segment::Member(name.to_owned())))
            .collect::<Result<_, _>>()?;
        Ok(Self { segments })
    }

    /// Returns the first value at the path; `None` if a part of the path is missing.
    ///
    /// A search that fails, as beyond the end of a list, returns `None` too, and so does one that would visit too many
    /// values.
    #[must_use]
    pub fn first<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        let found = Search::new().find(&self.segments, vec![root]);
        found.ok()?.first().copied()
    }

    /// Returns the names of a path that consists of members only.
    ///
    /// ```
    /// use lariat_apimachinery::structural::json_path::JsonPath;
    ///
    /// assert_eq!(JsonPath::parse(".spec.replicas")?.members(), Some(vec!["spec", "replicas"]));
    /// assert_eq!(JsonPath::parse(".spec.items[0]")?.members(), None);
    /// # Ok::<(), lariat_apimachinery::structural::json_path::PathError>(())
    /// ```
    pub fn members(&self) -> Option<Vec<&str>> {
        self.segments.iter().map(Segment::name).collect()
    }
}

/// Reads a path as far as it stays within its limits.
struct Limits {
    /// How many more filters may open before one closes.
    levels: usize,
    segments: usize,
}

impl Limits {
    fn new() -> Self {
        Self {
            levels: DEEPEST,
            segments: MOST_SEGMENTS,
        }
    }

    fn path(&mut self, text: &str) -> Result<JsonPath, PathError> {
        let text = text.trim();
        // Columns are written `.spec.x`, but the Go code puts braces around them before it parses, so a path that has
        // its own is fine too.
        let inner = text
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        let mut rest = inner.unwrap_or(text).trim();
        // In a filter `@` is the element and outside `$` is the object: both are where the search starts.
        rest = rest.strip_prefix(['$', '@']).unwrap_or(rest);
        self.segments_of(rest)
    }

    fn segments_of(&mut self, mut rest: &str) -> Result<JsonPath, PathError> {
        let mut segments = Vec::new();
        while !rest.is_empty() {
            let (some, after) = self.next_segments(rest)?;
            segments.extend(some);
            rest = after;
        }
        Ok(JsonPath { segments })
    }

    /// Counts a segment.
    fn segment(&mut self, segment: Segment) -> Result<Segment, PathError> {
        let left = self.segments.checked_sub(1);
        self.segments =
            left.ok_or_else(|| PathError::TooLarge(format!("more than {MOST_SEGMENTS} steps")))?;
        Ok(segment)
    }

    /// Reads one segment, which is none for a dot that only separates.
    ///
    /// A name in brackets may be several.
    fn next_segments<'a>(&mut self, text: &'a str) -> Result<(Vec<Segment>, &'a str), PathError> {
        if let Some(rest) = text.strip_prefix("..") {
            return Ok((vec![self.segment(Segment::Descend)?], rest));
        }
        if let Some(rest) = text.strip_prefix('[') {
            // Not the first bracket: a filter may have brackets of its own, and a text may contain one.
            let end = closing(rest).ok_or_else(|| "unterminated array".to_owned())?;
            let path = self.bracketed(rest[..end].trim())?;
            return Ok((path.segments, &rest[end + 1..]));
        }
        let rest = text.strip_prefix('.').unwrap_or(text);
        // In `.a.[0]` the dot adds nothing.
        if rest.is_empty() || rest.starts_with('[') {
            return Ok((Vec::new(), rest));
        }
        let (name, after) = split_name(rest)?;
        let segment = match name.as_str() {
            "*" => Segment::Wildcard,
            _ => Segment::Member(name),
        };
        Ok((vec![self.segment(segment)?], after))
    }

    /// Reads the content of brackets.
    fn bracketed(&mut self, text: &str) -> Result<JsonPath, PathError> {
        // The filter comes first, since what is inside may look like any of the other forms.
        if let Some(filter) = text
            .strip_prefix("?(")
            .and_then(|rest| rest.strip_suffix(')'))
        {
            let filter = self.nested(|limits| limits.filter(filter.trim()))?;
            return self.one(Segment::Filter(filter));
        }
        let parts = || text.split(',').map(str::trim);
        let are_names = parts().all(|part| unquoted(part).is_some());
        // One quoted name may contain commas.
        if text.contains(',') && (are_names || unquoted(text).is_none()) {
            let each = parts()
                .map(|part| self.bracketed(part))
                .collect::<Result<_, _>>()?;
            return self.one(Segment::Union(each));
        }
        if let Some(name) = unquoted(text) {
            // Go reads it as if it stood behind a dot, so each dot in it that has no backslash begins another name.
            let path = self.nested(|limits| limits.segments_of(&format!(".{name}")));
            return path.or_else(|_| self.one(Segment::Member(name.to_owned())));
        }
        // A member of an object is none of its elements, unlike with `.*`.
        let text = if text == "*" { ":" } else { text };
        self.one(range(text)?)
    }

    fn one(&mut self, segment: Segment) -> Result<JsonPath, PathError> {
        let segments = vec![self.segment(segment)?];
        Ok(JsonPath { segments })
    }

    /// Reads something one level deeper.
    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, PathError>,
    ) -> Result<T, PathError> {
        let left = self.levels.checked_sub(1);
        self.levels = left.ok_or_else(|| {
            PathError::TooLarge(format!("filters nest deeper than {DEEPEST} levels"))
        })?;
        let result = read(self);
        // Given back, since filters side by side do not nest; segments are not, since their sum is limited.
        self.levels += 1;
        result
    }

    fn filter(&mut self, text: &str) -> Result<Filter, PathError> {
        let split = operator_of(text);
        let left = self.operand(split.map_or(text, |(at, _)| &text[..at]))?;
        let compared = match split {
            None => None,
            Some((at, operator)) => Some((operator, self.operand(&text[at + operator.len()..])?)),
        };
        Ok(Filter { left, compared })
    }

    fn operand(&mut self, text: &str) -> Result<Operand, PathError> {
        let text = text.trim();
        // Anything else is a literal, in JSON or in single quotes.
        if text.starts_with(['@', '.', '$']) {
            return self.path(text).map(Operand::Path);
        }
        if let Some(literal) = unquoted(text) {
            return Ok(Operand::Literal(literal.into()));
        }
        serde_json::from_str(text)
            .map(Operand::Literal)
            .map_err(|_| format!("unrecognized text in a filter: {text}").into())
    }
}

/// Reads an index or a range of elements.
fn range(text: &str) -> Result<Segment, String> {
    let number = |part: &str| match part.trim() {
        "" => Ok(None),
        part => part
            .parse()
            .map(Some)
            .map_err(|_| format!("invalid array index {text}")),
    };
    let parts: Vec<Option<i64>> = text.split(':').map(number).collect::<Result<_, _>>()?;
    match parts[..] {
        // `[:]` is a range of everything, while `[]` is neither.
        [Some(index)] => Ok(Segment::Index(index)),
        [from, to] => Ok(Segment::Slice(from, to, 1)),
        [from, to, step] => Ok(Segment::Slice(from, to, step.unwrap_or(1))),
        _ => Err(format!("invalid array index {text}")),
    }
}

/// Splits a member's name off; a backslash escapes the next character.
fn split_name(text: &str) -> Result<(String, &str), String> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '.' | '[' => return Ok((name, &text[at..])),
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            // None of these can begin or end a name, so a mistyped path is refused instead of finding nothing.
            ' ' | ']' | '{' | '}' | '(' | ')' => {
                return Err(format!("unexpected {character:?} in {text:?}"));
            }
            _ => name.push(character),
        }
    }
    Ok((name, ""))
}

/// Returns the position of the closing bracket in `text`, outside of quotes.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

fn unquoted(text: &str) -> Option<&str> {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('\'').or_else(|| inside('"'))
}

/// Finds the first operator outside of quotes.
fn operator_of(text: &str) -> Option<(usize, &'static str)> {
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, _) => {
                // The order of `OPERATORS` makes `<=` win over `<`.
                let here = OPERATORS.iter().find(|each| text[at..].starts_with(**each));
                if let Some(operator) = here {
                    return Some((at, operator));
                }
            }
        }
    }
    None
}

impl Segment {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Member(name) => Some(name),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn check(path: &str, expected: &[Value]) {
        let object = json!({
            "spec": {"x": 1, "a.b": "dotted", "list": [10, 20, 30], "map": {"k": {"v": 7}}},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "n": 1},
                {"type": "Synced", "status": "False", "n": 2},
            ]},
        });
        let path = JsonPath::parse(path).unwrap();
        let found = Search::new().find(&path.segments, vec![&object]);
        let found: Vec<Value> = found.into_iter().flatten().cloned().collect();
        assert_eq!(found, expected, "{path:?}");
        assert_eq!(path.first(&object), expected.first(), "{path:?}");
    }

    #[test]
    fn paths_lead_where_the_client_library_leads() {
        check(".spec.x", &[json!(1)]);
        check("{.spec.x}", &[json!(1)]);
        check("$.spec.x", &[json!(1)]);
        check(".spec['a.b']", &[]);
        check(r".spec['a\.b']", &[json!("dotted")]);
        check(".spec['x','missing','map']['x','k']['v']", &[json!(7)]);
        check(r".spec.a\.b", &[json!("dotted")]);
        check(".spec.list[0]", &[json!(10)]);
        check(".spec.list[-1]", &[json!(30)]);
        check(".spec.list[9]", &[]);
        check(".spec.list[*]", &[json!(10), json!(20), json!(30)]);
        check(".spec.list[1:]", &[json!(20), json!(30)]);
        check(".spec.list[0:3:2]", &[json!(10), json!(30)]);
        check(".spec.list[1:1]", &[]);
        check(".spec.list[0,2]", &[json!(10), json!(30)]);
        check("..v", &[json!(7)]);
        check(".spec.missing.deeper", &[]);
        check(
            r#".status.conditions[?(@.type=="Ready")].status"#,
            &[json!("True")],
        );
        check(
            ".status.conditions[?(@.type!='Ready')].status",
            &[json!("False")],
        );
        check(".status.conditions[?(@.n>1)].type", &[json!("Synced")]);
        check(".status.conditions[?(@.none)].type", &[]);
        check(".status.conditions.*.n", &[json!(1), json!(2)]);
    }

    #[test]
    fn a_step_that_fails_for_one_value_fails_for_all() {
        let object = json!({
            "list": ["a", "b"], "map": {"a": "b"}, "nothing": null,
            "items": [{"k": "a", "n": 1}, {"k": "b", "n": 2.5, "deep": [1]}, {"k": null}],
        });
        let check = |path: &str, expected: Value| {
            let path = JsonPath::parse(path).unwrap();
            let found = path.first(&object).cloned();
            assert_eq!(found.unwrap_or(json!("none")), expected, "{path:?}");
        };
        check(".list[0:9]", json!("none"));
        check(".list[0,9]", json!("none"));
        check(".list[-2:]", json!("a"));
        check(".list[-9]", json!("none"));
        check(".map[*]", json!("none"));
        check(".map.*", json!("b"));
        check(".nothing", Value::Null);
        check(".nothing[0]", json!("none"));
        check("..[0]", json!("none"));
        check(".map[?(@.a)]", json!("none"));
        check(r#".items[?(@.k=="a")].n"#, json!("none"));
        check(".items[?(@.n>0)].k", json!("none"));
        check(".items[0:2][?(@.n>0)].k", json!("none"));
        check(".items[?(@.missing==1)].k", json!("none"));
        // Go counts what it had before it failed.
        check(".items[?(@.deep[5])].k", json!("b"));
        check(".items[?(@.k[0])].k", json!("a"));
    }

    #[test]
    fn paths_that_cannot_be_read_are_errors() {
        for path in [".a[", ".a[x]", ".a[?(@.b==)]", ".a[1:2:3:4]", ".a b"] {
            assert!(JsonPath::parse(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_path_is_bounded_in_depth_and_steps() {
        let nested =
            |levels: usize| format!(".a{}@.b{}", "[?(@".repeat(levels), ")]".repeat(levels));
        assert!(JsonPath::parse(&nested(DEEPEST)).is_ok());
        let error = JsonPath::parse(&nested(DEEPEST + 1)).unwrap_err();
        assert_eq!(error.to_string(), "filters nest deeper than 32 levels");
        assert!(JsonPath::parse(&nested(100_000)).is_err());
        // A quote in a name opens no text, and hides no bracket.
        assert!(JsonPath::parse(&format!(".a'{}", &nested(100_000)[2..])).is_err());
        // Filters side by side do not nest.
        assert!(JsonPath::parse(&".a[?(@.b)]".repeat(DEEPEST + 1)).is_ok());
        assert!(JsonPath::parse(&".a".repeat(MOST_SEGMENTS)).is_ok());
        for path in [".a", "..", "[0,0]", "[?(@.a)]"] {
            let error = JsonPath::parse(&path.repeat(MOST_SEGMENTS + 1)).unwrap_err();
            assert_eq!(error.to_string(), "more than 256 steps", "{path}");
        }
    }

    #[test]
    fn a_search_that_multiplies_gives_up() {
        let object = json!({"a": (0..40).fold(json!(1), |inner, _| json!([inner]))});
        let filters = (0..30).fold("[0].x".to_owned(), |inner, _| format!("[?(@[0,0]{inner})]"));
        // Each of these has about 2^30 ways to go before it is known that none leads anywhere.
        for path in [
            format!(".a{}.missing", "[0,0]".repeat(30)),
            format!("{}missing", "..".repeat(30)),
            format!(".a{filters}"),
        ] {
            assert_eq!(
                JsonPath::parse(&path).unwrap().first(&object),
                None,
                "{path}"
            );
        }
        let path = JsonPath::parse(&format!(".a{}", "[0,0]".repeat(30)));
        assert_eq!(path.unwrap().first(&object), None);
    }

    proptest! {
        #[test]
        fn no_path_panics(path in r"[.\[\]*?()@a-c'0-9:,=<>\\ -]{0,24}") {
            let object = json!({"a": [{"b": 1}, {"c": [1, 2]}], "b": {"a": "c"}});
            if let Ok(path) = JsonPath::parse(&path) {
                let _ = path.first(&object);
            }
        }
    }
}
