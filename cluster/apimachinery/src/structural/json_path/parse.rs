//! Reading a path.

use super::path::{Filter, JsonPath, Operand, PathError, Segment};

/// The deepest nesting of filters.
///
/// Reading and following a path recurse once for each level.
// Columns in use have one filter, at times one inside of another; this is far beyond both.
pub(super) const DEEPEST: usize = 32;

/// The most segments of a path, including those of its filters.
///
/// Following a path recurses once for each.
pub(super) const MOST_SEGMENTS: usize = 256;

/// The comparisons of a filter, longer ones before those they begin with.
const OPERATORS: [&str; 6] = ["==", "!=", "<=", ">=", "<", ">"];

/// Reads a path as far as it stays within its limits.
pub(super) struct Limits {
    /// How many more filters may open before one closes.
    levels: usize,
    segments: usize,
}

impl Limits {
    pub(super) fn new() -> Self {
        Self {
            levels: DEEPEST,
            segments: MOST_SEGMENTS,
        }
    }

    pub(super) fn path(&mut self, text: &str) -> Result<JsonPath, PathError> {
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
    pub(super) fn segment(&mut self, segment: Segment) -> Result<Segment, PathError> {
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
