//! Following a path.

use serde_json::Value;

use super::path::{Filter, Operand, Segment};

/// How many values a search may look at before it gives up.
const MOST_VALUES: usize = 100_000;

/// What a step leads to, in order.
///
/// An error carries the values that Go returns beside its own: a filter that asks what exists counts them.
pub(super) type Found<'a> = Result<Vec<&'a Value>, Vec<&'a Value>>;

/// Follows a path step by step, as Go does: a step that fails for one value fails for all.
///
/// Without a bound a short path would have endless work: each `[0,0]` doubles what there is to look at.
pub(super) struct Search {
    /// How many more values it looks at.
    left: usize,
}

impl Search {
    pub(super) fn new() -> Self {
        Self { left: MOST_VALUES }
    }

    /// Source: `evalList`.
    pub(super) fn find<'a>(
        &mut self,
        segments: &[Segment],
        mut values: Vec<&'a Value>,
    ) -> Found<'a> {
        for segment in segments {
            values = self.step(segment, values)?;
        }
        Ok(values)
    }

    fn step<'a>(&mut self, segment: &Segment, values: Vec<&'a Value>) -> Found<'a> {
        match segment {
            Segment::Member(name) => {
                self.seen(values.into_iter().filter_map(|each| each.get(name)))
            }
            Segment::Wildcard => self.seen(values.into_iter().flat_map(children)),
            Segment::Descend => self.descend(values),
            Segment::Index(index) => self.elements(values, |_| range_of_index(*index), 1),
            Segment::Slice(from, to, step) => {
                let range = |length| (from.unwrap_or(0), to.unwrap_or(length), false);
                self.elements(values, range, *step)
            }
            Segment::Union(paths) => {
                let mut found = Vec::new();
                for path in paths {
                    match self.find(&path.segments, values.clone()) {
                        Ok(more) => found.extend(more),
                        Err(_) => return Err(values),
                    }
                }
                Ok(found)
            }
            Segment::Filter(filter) => self.filter(filter, values),
        }
    }

    /// Collects values as long as they are not too many.
    fn seen<'a>(&mut self, values: impl Iterator<Item = &'a Value>) -> Found<'a> {
        let mut found = Vec::new();
        for value in values {
            self.look()?;
            found.push(value);
        }
        Ok(found)
    }

    /// Counts a value; none may be looked at any more if it fails.
    fn look<'a>(&mut self) -> Result<(), Vec<&'a Value>> {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(Vec::new()),
        }
    }

    /// Returns values and all below them, each before what is in it.
    ///
    /// Source: `evalRecursive`.
    fn descend<'a>(&mut self, values: Vec<&'a Value>) -> Found<'a> {
        let (mut found, mut left) = (Vec::new(), values);
        left.reverse();
        while let Some(value) = left.pop() {
            self.look()?;
            let at = left.len();
            left.extend(children(value));
            left[at..].reverse();
            if left.len() > at {
                found.push(value);
            }
        }
        Ok(found)
    }

    /// Returns the elements in a range of each value, which Go refuses to look for in what is no list.
    ///
    /// `range` makes the ends for a length, and says whether a last end of 0 is that of the list. Source: `evalArray`.
    fn elements<'a>(
        &mut self,
        values: Vec<&'a Value>,
        range: impl Fn(i64) -> (i64, i64, bool),
        step: i64,
    ) -> Found<'a> {
        let mut found = Vec::new();
        for value in values.iter().filter(|value| !value.is_null()) {
            let Value::Array(elements) = value else {
                return Err(values);
            };
            let length = i64::try_from(elements.len()).unwrap_or(i64::MAX);
            let (mut from, mut to, is_derived) = range(length);
            if from < 0 {
                from = from.saturating_add(length);
            }
            if to < 0 || (to == 0 && is_derived) {
                to = to.saturating_add(length);
            }
            if from == to {
                // Nothing is asked for, and what comes later is not looked at.
                return Ok(found);
            }
            let ends = [from, to].map(|end| usize::try_from(end).ok());
            let [Some(from), Some(to)] = ends else {
                return Err(values);
            };
            let (Some(range), Ok(step @ 1..)) = (elements.get(from..to), usize::try_from(step))
            else {
                return Err(values);
            };
            found.extend(self.seen(range.iter().step_by(step))?);
        }
        Ok(found)
    }

    /// Source: `evalFilter`.
    fn filter<'a>(&mut self, filter: &Filter, values: Vec<&'a Value>) -> Found<'a> {
        let mut found = Vec::new();
        for value in &values {
            let Value::Array(elements) = value else {
                return Err(values);
            };
            for element in elements {
                self.look()?;
                let left = self.resolve(&filter.left, element);
                let Some((operator, right)) = &filter.compared else {
                    let (Ok(left) | Err(left)) = left;
                    found.extend((!left.is_empty()).then_some(element));
                    continue;
                };
                let right = self.resolve(right, element);
                match (left.as_deref(), right.as_deref()) {
                    (Ok([]), _) | (Ok([_]), Ok([])) => {}
                    (Ok([left]), Ok([right])) => match compare(operator, left, right) {
                        Some(admits) => found.extend(admits.then_some(element)),
                        None => return Err(found),
                    },
                    _ => return Err(values),
                }
            }
        }
        Ok(found)
    }

    fn resolve<'a>(&mut self, operand: &'a Operand, element: &'a Value) -> Found<'a> {
        match operand {
            Operand::Path(path) => self.find(&path.segments, vec![element]),
            Operand::Literal(value) => Ok(vec![value]),
        }
    }
}

/// Returns the range of one element, whose end is derived from it.
fn range_of_index(index: i64) -> (i64, i64, bool) {
    (index, index.saturating_add(1), true)
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(elements) => Box::new(elements.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// Compares two values; `None` if Go does not compare their types.
///
/// Source: `Equal` and `Less` in `k8s.io/client-go/third_party/forked/golang/template`.
fn compare(operator: &str, left: &Value, right: &Value) -> Option<bool> {
    let order = match (left, right) {
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) if matches!(operator, "==" | "!=") => {
            left.cmp(right)
        }
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => left.cmp(&right),
            (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?)?,
            // An integer is not compared with a fraction.
            _ => return None,
        },
        _ => return None,
    };
    Some(match operator {
        "==" => order.is_eq(),
        "!=" => order.is_ne(),
        "<" => order.is_lt(),
        ">" => order.is_gt(),
        "<=" => order.is_le(),
        _ => order.is_ge(),
    })
}
