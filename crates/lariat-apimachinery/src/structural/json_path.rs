//! JSON paths as printer columns and scale subresources write them: `.status.conditions[?(@.type=="Ready")].status`.
//!
//! Source: `k8s.io/client-go/util/jsonpath`, with missing keys allowed. Unlike there, a path is bounded, since whoever
//! may write a CustomResourceDefinition chooses it: `Limits` bounds reading it, and `Search` following it.

use std::cmp::Ordering;

use serde_json::Value;

/// How deep filters may nest. Reading and following a path recurse once for each level.
const DEEPEST: usize = 32;

/// How many steps a path may have, those of its filters included. Following a path recurses once for each.
const MOST_STEPS: usize = 256;

/// How many values a search may look at before it gives up.
const MOST_VALUES: usize = 100_000;

/// A parsed path.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JsonPath {
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
    compared: Option<(&'static str, Operand)>,
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
    ///
    /// # Errors
    ///
    /// What is wrong with it, or that it is too long.
    pub fn parse(text: &str) -> Result<Self, String> {
        Limits::new().path(text)
    }

    /// Reads names with dots between them, in which nothing else has a meaning.
    ///
    /// # Errors
    ///
    /// It has too many names.
    pub fn dotted(text: &str) -> Result<Self, String> {
        let mut limits = Limits::new();
        let names = text.strip_prefix('.').unwrap_or(text).split('.');
        let steps = names.map(|name| limits.step(Step::Member(name.to_owned())));
        let steps = steps.collect::<Result<_, _>>()?;
        Ok(Self { steps })
    }

    /// Returns the first value the path leads to, which is none where something on the way is missing.
    ///
    /// A search that would look at too many values finds none either.
    #[must_use]
    pub fn first<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        Search::new().first(&self.steps, root)
    }

    /// Returns the members of a path that is nothing but members.
    pub fn members(&self) -> Option<Vec<&str>> {
        self.steps.iter().map(Step::name).collect()
    }
}

/// Reads a path as far as it stays within its limits.
struct Limits {
    /// How many more filters may open before one closes.
    levels: usize,
    steps: usize,
}

impl Limits {
    fn new() -> Self {
        Self {
            levels: DEEPEST,
            steps: MOST_STEPS,
        }
    }

    fn path(&mut self, text: &str) -> Result<JsonPath, String> {
        let text = text.trim();
        let inner = text
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        let mut rest = inner.unwrap_or(text).trim();
        rest = rest.strip_prefix(['$', '@']).unwrap_or(rest);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, after) = self.next_step(rest)?;
            steps.extend(step);
            rest = after;
        }
        Ok(JsonPath { steps })
    }

    /// Counts a step.
    fn step(&mut self, step: Step) -> Result<Step, String> {
        let left = self.steps.checked_sub(1);
        self.steps = left.ok_or_else(|| format!("more than {MOST_STEPS} steps"))?;
        Ok(step)
    }

    /// Reads one step, which is none for a dot that only separates.
    fn next_step<'a>(&mut self, text: &'a str) -> Result<(Option<Step>, &'a str), String> {
        if let Some(rest) = text.strip_prefix("..") {
            return Ok((Some(self.step(Step::Descend)?), rest));
        }
        if let Some(rest) = text.strip_prefix('[') {
            let end = closing(rest).ok_or("unterminated array")?;
            let step = self.bracketed(rest[..end].trim())?;
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
        Ok((Some(self.step(step)?), after))
    }

    /// Reads what stands between brackets.
    fn bracketed(&mut self, text: &str) -> Result<Step, String> {
        if let Some(filter) = text
            .strip_prefix("?(")
            .and_then(|rest| rest.strip_suffix(')'))
        {
            let filter = self.nested(|limits| limits.filter(filter.trim()))?;
            return self.step(Step::Filter(filter));
        }
        if let Some(name) = unquoted(text) {
            return self.step(Step::Member(name.to_owned()));
        }
        if text == "*" {
            return self.step(Step::Wildcard);
        }
        if text.contains(',') {
            let each = text.split(',').map(|part| self.bracketed(part.trim()));
            let each = each.collect::<Result<_, _>>()?;
            return self.step(Step::Union(each));
        }
        self.step(range(text)?)
    }

    /// Reads something one level deeper.
    fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        let left = self.levels.checked_sub(1);
        self.levels = left.ok_or_else(|| format!("filters nest deeper than {DEEPEST} levels"))?;
        let result = read(self);
        self.levels += 1;
        result
    }

    fn filter(&mut self, text: &str) -> Result<Filter, String> {
        let split = operator_of(text);
        let left = self.operand(split.map_or(text, |(at, _)| &text[..at]))?;
        let compared = match split {
            None => None,
            Some((at, operator)) => Some((operator, self.operand(&text[at + operator.len()..])?)),
        };
        Ok(Filter { left, compared })
    }

    fn operand(&mut self, text: &str) -> Result<Operand, String> {
        let text = text.trim();
        if text.starts_with(['@', '.', '$']) {
            return self.path(text).map(Operand::Path);
        }
        if let Some(literal) = unquoted(text) {
            return Ok(Operand::Literal(literal.into()));
        }
        serde_json::from_str(text)
            .map(Operand::Literal)
            .map_err(|_| format!("unrecognized text in a filter: {text}"))
    }
}

/// Reads an index or a range of elements.
fn range(text: &str) -> Result<Step, String> {
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
                let here = OPERATORS.iter().find(|each| text[at..].starts_with(**each));
                if let Some(operator) = here {
                    return Some((at, operator));
                }
            }
        }
    }
    None
}

impl Step {
    fn name(&self) -> Option<&str> {
        match self {
            Self::Member(name) => Some(name),
            _ => None,
        }
    }
}

/// Follows a path, depth first, until it finds a value or has looked at too many.
///
/// Without the bound a short path would have endless work: each `[0,0]` doubles what there is to look at.
struct Search {
    /// How many more values it looks at.
    left: usize,
}

/// What follows a step: a search for the rest of the path, from a value the step leads to.
type Next<'s, 'a> = &'s mut dyn FnMut(&mut Search, &'a Value) -> Option<&'a Value>;

impl Search {
    fn new() -> Self {
        Self { left: MOST_VALUES }
    }

    fn first<'a>(&mut self, steps: &[Step], value: &'a Value) -> Option<&'a Value> {
        let Some((step, rest)) = steps.split_first() else {
            return Some(value);
        };
        self.follow(step, value, &mut |search, value| search.first(rest, value))
    }

    /// Goes on from each value a step leads to, in order, until the rest of the path leads somewhere.
    fn follow<'a>(
        &mut self,
        step: &Step,
        value: &'a Value,
        next: Next<'_, 'a>,
    ) -> Option<&'a Value> {
        match step {
            Step::Member(name) => self.each(value.get(name), next),
            Step::Wildcard => self.each(children(value), next),
            Step::Descend => {
                let all = self.descendants(value);
                self.each(all, next)
            }
            Step::Index(index) => {
                let elements = elements(value);
                let at = place(*index, elements.len());
                self.each(at.and_then(|at| elements.get(at)), next)
            }
            Step::Slice(from, to, step) => self.each(slice(value, *from, *to, *step), next),
            Step::Union(steps) => steps
                .iter()
                .find_map(|step| self.follow(step, value, &mut *next)),
            Step::Filter(filter) => self.each(elements(value), &mut |search, element| {
                if search.admits(filter, element) {
                    next(search, element)
                } else {
                    None
                }
            }),
        }
    }

    fn each<'a>(
        &mut self,
        values: impl IntoIterator<Item = &'a Value>,
        next: Next<'_, 'a>,
    ) -> Option<&'a Value> {
        for value in values {
            self.look()?;
            if let Some(found) = next(self, value) {
                return Some(found);
            }
        }
        None
    }

    /// Counts a value; none may be looked at any more if this is `None`.
    fn look(&mut self) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        Some(())
    }

    /// Returns a value and all below it, nearest first.
    fn descendants<'a>(&mut self, value: &'a Value) -> Vec<&'a Value> {
        let mut all = vec![value];
        let mut at = 0;
        while at < all.len() {
            for child in children(all[at]) {
                // They are held in memory, so they count before they are looked at.
                if self.look().is_none() {
                    return Vec::new();
                }
                all.push(child);
            }
            at += 1;
        }
        all
    }

    fn admits(&mut self, filter: &Filter, element: &Value) -> bool {
        let left = self.resolve(&filter.left, element);
        let Some((operator, right)) = &filter.compared else {
            return left.is_some();
        };
        let (Some(left), Some(right)) = (left, self.resolve(right, element)) else {
            return false;
        };
        let order = compare(left, right);
        match *operator {
            "==" => order == Some(Ordering::Equal),
            "!=" => order != Some(Ordering::Equal),
            "<" => order == Some(Ordering::Less),
            ">" => order == Some(Ordering::Greater),
            "<=" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            _ => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }

    fn resolve<'a>(&mut self, operand: &'a Operand, element: &'a Value) -> Option<&'a Value> {
        match operand {
            Operand::Path(path) => self.first(&path.steps, element),
            Operand::Literal(value) => Some(value),
        }
    }
}

fn elements(value: &Value) -> &[Value] {
    value.as_array().map_or(&[][..], Vec::as_slice)
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

fn slice(
    value: &Value,
    from: Option<i64>,
    to: Option<i64>,
    step: i64,
) -> Box<dyn Iterator<Item = &Value> + '_> {
    let elements = elements(value);
    let end = |index: Option<i64>, default: usize| match index {
        None => default,
        Some(index) => place(index, elements.len()).map_or(0, |at| at.min(elements.len())),
    };
    let (from, to) = (end(from, 0), end(to, elements.len()));
    let step = usize::try_from(step).ok().filter(|step| *step > 0);
    match (elements.get(from..to), step) {
        (Some(range), Some(step)) => Box::new(range.iter().step_by(step)),
        _ => Box::new(std::iter::empty()),
    }
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(elements) => Box::new(elements.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => Box::new(std::iter::empty()),
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

    impl Search {
        /// Collects everything a path leads to.
        fn each_of(&mut self, steps: &[Step], value: &Value, found: &mut Vec<Value>) {
            match steps.split_first() {
                None => found.push(value.clone()),
                Some((step, rest)) => {
                    self.follow(step, value, &mut |search, value| {
                        search.each_of(rest, value, found);
                        None
                    });
                }
            }
        }
    }

    fn check(path: &str, expected: &[Value]) {
        let object = json!({
            "spec": {"x": 1, "a.b": "dotted", "list": [10, 20, 30], "map": {"k": {"v": 7}}},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "n": 1},
                {"type": "Synced", "status": "False", "n": 2},
            ]},
        });
        let path = JsonPath::parse(path).unwrap();
        let mut found: Vec<Value> = Vec::new();
        // It goes on until it has been everywhere if nothing it finds is enough.
        Search::new().each_of(&path.steps, &object, &mut found);
        assert_eq!(found, expected, "{path:?}");
        assert_eq!(path.first(&object), expected.first(), "{path:?}");
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

    #[test]
    fn a_path_is_bounded_in_depth_and_steps() {
        let nested =
            |levels: usize| format!(".a{}@.b{}", "[?(@".repeat(levels), ")]".repeat(levels));
        assert!(JsonPath::parse(&nested(DEEPEST)).is_ok());
        let error = JsonPath::parse(&nested(DEEPEST + 1)).unwrap_err();
        assert_eq!(error, "filters nest deeper than 32 levels");
        assert!(JsonPath::parse(&nested(100_000)).is_err());
        // A quote in a name opens no text, and hides no bracket.
        assert!(JsonPath::parse(&format!(".a'{}", &nested(100_000)[2..])).is_err());
        // Filters side by side do not nest.
        assert!(JsonPath::parse(&".a[?(@.b)]".repeat(DEEPEST + 1)).is_ok());
        assert!(JsonPath::parse(&".a".repeat(MOST_STEPS)).is_ok());
        for path in [".a", "..", "[0,0]", "[?(@.a)]"] {
            let error = JsonPath::parse(&path.repeat(MOST_STEPS + 1)).unwrap_err();
            assert_eq!(error, "more than 256 steps", "{path}");
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
        // What comes first is found at once, however much would follow.
        let path = JsonPath::parse(&format!(".a{}", "[0,0]".repeat(30)));
        assert!(path.unwrap().first(&object).is_some());
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
