//! JSON paths as printer columns and scale subresources write them: `.status.conditions[?(@.type=="Ready")].status`.
//!
//! Source: `k8s.io/client-go/util/jsonpath`, with missing keys allowed.

use std::cmp::Ordering;

use serde_json::Value;

/// A parsed path.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Member(String),
    /// All members or elements.
    Wildcard,
    /// Whatever lies below, itself included.
    Descend,
    /// From, to and step of a range of elements; negative ends count from the back.
    Slice(Option<i64>, Option<i64>, i64),
    Index(i64),
    Union(Vec<Step>),
    Filter(Filter),
}

#[derive(Debug, Clone, PartialEq)]
struct Filter {
    left: Operand,
    /// The operator and its right side, unless the filter asks only whether the left one exists.
    compared: Option<(String, Operand)>,
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Path(JsonPath),
    Literal(Value),
}

/// The comparisons of a filter, longer ones before those they begin with.
const OPERATORS: [&str; 6] = ["==", "!=", "<=", ">=", "<", ">"];

impl JsonPath {
    /// Reads a path, with or without the braces of a template around it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let inner = text
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        let mut rest = inner.unwrap_or(text).trim();
        rest = rest.strip_prefix(['$', '@']).unwrap_or(rest);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, after) = next_step(rest)?;
            steps.extend(step);
            rest = after;
        }
        Ok(Self { steps })
    }

    /// Returns what the path leads to, which is nothing where something on the way is missing.
    pub(crate) fn find<'a>(&self, root: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![root];
        for step in &self.steps {
            found = found
                .into_iter()
                .flat_map(|each| step.apply(each))
                .collect();
        }
        found
    }

    /// Returns the members of a path that is nothing but members.
    pub(crate) fn members(&self) -> Option<Vec<&str>> {
        self.steps.iter().map(Step::name).collect()
    }
}

/// Reads one step, which is none for a dot that only separates.
fn next_step(text: &str) -> Result<(Option<Step>, &str), String> {
    if let Some(rest) = text.strip_prefix("..") {
        return Ok((Some(Step::Descend), rest));
    }
    if let Some(rest) = text.strip_prefix('[') {
        let end = closing(rest).ok_or("unterminated array")?;
        let step = bracketed(rest[..end].trim())?;
        return Ok((Some(step), &rest[end + 1..]));
    }
    let rest = text.strip_prefix('.').unwrap_or(text);
    if rest.is_empty() || rest.starts_with('[') {
        return Ok((None, rest));
    }
    let (name, after) = split_name(rest)?;
    let step = match name.as_str() {
        "*" => Step::Wildcard,
        _ => Step::Member(name),
    };
    Ok((Some(step), after))
}

/// Splits a member's name off, in which a backslash takes the next character as it is.
fn split_name(text: &str) -> Result<(String, &str), String> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '.' | '[' => return Ok((name, &text[at..])),
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            ' ' | ']' | '{' | '}' | '(' | ')' => {
                return Err(format!("unexpected {character:?} in {text:?}"));
            }
            _ => name.push(character),
        }
    }
    Ok((name, ""))
}

/// Returns where the bracket that was opened before `text` is closed, outside of quotes.
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

/// Reads what stands between brackets.
fn bracketed(text: &str) -> Result<Step, String> {
    if let Some(filter) = text
        .strip_prefix("?(")
        .and_then(|rest| rest.strip_suffix(')'))
    {
        return Ok(Step::Filter(parse_filter(filter.trim())?));
    }
    if let Some(name) = unquoted(text) {
        return Ok(Step::Member(name.to_owned()));
    }
    if text == "*" {
        return Ok(Step::Wildcard);
    }
    if text.contains(',') {
        let each = text.split(',').map(|part| bracketed(part.trim()));
        return each.collect::<Result<_, _>>().map(Step::Union);
    }
    let number = |part: &str| match part.trim() {
        "" => Ok(None),
        part => part
            .parse()
            .map(Some)
            .map_err(|_| format!("invalid array index {text}")),
    };
    let parts: Vec<Option<i64>> = text.split(':').map(number).collect::<Result<_, _>>()?;
    match parts[..] {
        [Some(index)] => Ok(Step::Index(index)),
        [from, to] => Ok(Step::Slice(from, to, 1)),
        [from, to, step] => Ok(Step::Slice(from, to, step.unwrap_or(1))),
        _ => Err(format!("invalid array index {text}")),
    }
}

fn unquoted(text: &str) -> Option<&str> {
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inside('\'').or_else(|| inside('"'))
}

fn parse_filter(text: &str) -> Result<Filter, String> {
    let split = operator_of(text);
    let left = parse_operand(split.map_or(text, |(at, _)| &text[..at]))?;
    let compared = match split {
        None => None,
        Some((at, operator)) => {
            let right = parse_operand(&text[at + operator.len()..])?;
            Some((operator.to_owned(), right))
        }
    };
    Ok(Filter { left, compared })
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
                let here = OPERATORS.iter().find(|each| text[at..].starts_with(**each));
                if let Some(operator) = here {
                    return Some((at, operator));
                }
            }
        }
    }
    None
}

fn parse_operand(text: &str) -> Result<Operand, String> {
    let text = text.trim();
    if text.starts_with(['@', '.', '$']) {
        return JsonPath::parse(text).map(Operand::Path);
    }
    if let Some(literal) = unquoted(text) {
        return Ok(Operand::Literal(literal.into()));
    }
    serde_json::from_str(text)
        .map(Operand::Literal)
        .map_err(|_| format!("unrecognized text in a filter: {text}"))
}

impl Step {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Member(name) => Some(name),
            _ => None,
        }
    }

    fn apply<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Member(name) => value.get(name).into_iter().collect(),
            Self::Wildcard => children(value),
            Self::Descend => descendants(value),
            Self::Index(index) => {
                let elements = value.as_array().map_or(&[][..], Vec::as_slice);
                let at = place(*index, elements.len());
                at.and_then(|at| elements.get(at)).into_iter().collect()
            }
            Self::Slice(from, to, step) => slice(value, *from, *to, *step),
            Self::Union(steps) => steps.iter().flat_map(|step| step.apply(value)).collect(),
            Self::Filter(filter) => {
                let elements = value.as_array().into_iter().flatten();
                elements.filter(|element| filter.admits(element)).collect()
            }
        }
    }
}

/// Returns the place an index means, which counts from the back when it is negative.
fn place(index: i64, length: usize) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    let at = if index < 0 {
        index.checked_add(length)?
    } else {
        index
    };
    usize::try_from(at).ok()
}

fn slice(value: &Value, from: Option<i64>, to: Option<i64>, step: i64) -> Vec<&Value> {
    let elements = value.as_array().map_or(&[][..], Vec::as_slice);
    let end = |index: Option<i64>, default: usize| match index {
        None => default,
        Some(index) => place(index, elements.len()).map_or(0, |at| at.min(elements.len())),
    };
    let (from, to) = (end(from, 0), end(to, elements.len()));
    let step = usize::try_from(step).ok().filter(|step| *step > 0);
    match (elements.get(from..to), step) {
        (Some(range), Some(step)) => range.iter().step_by(step).collect(),
        _ => Vec::new(),
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(elements) => elements.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    }
}

fn descendants(value: &Value) -> Vec<&Value> {
    let mut all = vec![value];
    let mut at = 0;
    while at < all.len() {
        all.extend(children(all[at]));
        at += 1;
    }
    all
}

impl Filter {
    fn admits(&self, element: &Value) -> bool {
        let left = self.left.resolve(element);
        let Some((operator, right)) = &self.compared else {
            return left.is_some();
        };
        let (Some(left), Some(right)) = (left, right.resolve(element)) else {
            return false;
        };
        let order = compare(left, right);
        match operator.as_str() {
            "==" => order == Some(Ordering::Equal),
            "!=" => order != Some(Ordering::Equal),
            "<" => order == Some(Ordering::Less),
            ">" => order == Some(Ordering::Greater),
            "<=" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

impl Operand {
    fn resolve<'a>(&'a self, element: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Path(path) => path.find(element).first().copied(),
            Self::Literal(value) => Some(value),
        }
    }
}

fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => left.as_f64()?.partial_cmp(&right.as_f64()?),
        _ => (left == right).then_some(Ordering::Equal),
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
        let found: Vec<Value> = path.find(&object).into_iter().cloned().collect();
        assert_eq!(found, expected, "{path:?}");
    }

    #[test]
    fn paths_lead_where_the_client_library_leads() {
        check(".spec.x", &[json!(1)]);
        check("{.spec.x}", &[json!(1)]);
        check("$.spec.x", &[json!(1)]);
        check(".spec['a.b']", &[json!("dotted")]);
        check(r".spec.a\.b", &[json!("dotted")]);
        check(".spec.list[0]", &[json!(10)]);
        check(".spec.list[-1]", &[json!(30)]);
        check(".spec.list[9]", &[]);
        check(".spec.list[*]", &[json!(10), json!(20), json!(30)]);
        check(".spec.list[1:]", &[json!(20), json!(30)]);
        check(".spec.list[0:3:2]", &[json!(10), json!(30)]);
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
    fn paths_that_cannot_be_read_are_errors() {
        for path in [".a[", ".a[x]", ".a[?(@.b==)]", ".a[1:2:3:4]", ".a b"] {
            assert!(JsonPath::parse(path).is_err(), "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_path_panics(path in r"[.\[\]*?()@a-c'0-9:,=<>\\ -]{0,24}") {
            let object = json!({"a": [{"b": 1}, {"c": [1, 2]}], "b": {"a": "c"}});
            if let Ok(path) = JsonPath::parse(&path) {
                path.find(&object);
            }
        }
    }
}
