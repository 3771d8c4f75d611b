//! Paths of fields in objects.

use std::fmt;
use std::str::FromStr;

use serde_json::Value as Json;

/// The path of a field in an object, such as `spec.containers[*].image`.
///
/// Other examples are `spec.nodeName` and `status.conditions[?(@.type=="Ready")].status`. Members are separated by
/// dots. A member whose name contains dots or brackets is written as `['a.b/c']` or `["a.b/c"]`, or without quotes if
/// it contains no bracket, as `metadata.annotations[a.b/c]`. `[2]` selects the third element of an array, `[*]` all
/// elements, and `[?(@.type=="Ready")]` the first element whose member is that text. JSONPaths of printer columns,
/// which begin with a dot, are accepted too.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Path {
    text: String,
    steps: Vec<PathStep>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum PathStep {
    Member(String),
    Element(usize),
    All,
    /// The first element whose member, possibly nested, is a text.
    First(Vec<String>, String),
}

impl Path {
    /// Returns whether the path contains `[*]`, and so can have any number of values.
    #[must_use]
    pub fn is_many(&self) -> bool {
        self.steps.contains(&PathStep::All)
    }

    /// Returns the steps of the path as JSON.
    ///
    /// A step is a text for a member, a number for an element, `null` for all elements, and an object for the first
    /// element whose member at a path is a text.
    ///
    /// ```
    /// let path: lariat::sql::Path = "spec.containers[*].image".parse()?;
    /// assert_eq!(path.steps().to_string(), r#"["spec","containers",null,"image"]"#);
    /// # Ok::<(), lariat::sql::PathError>(())
    /// ```
    #[must_use]
    pub fn steps(&self) -> Json {
        let steps = self.steps.iter().map(|step| match step {
            PathStep::Member(name) => serde_json::json!(name),
            PathStep::Element(index) => serde_json::json!(index),
            PathStep::All => Json::Null,
            PathStep::First(path, text) => serde_json::json!({"path": path, "is": text}),
        });
        steps.collect()
    }

    /// Finds the values in an object in order, except `null`.
    ///
    /// # Errors
    ///
    /// Fails if something on the way exists and is not what the path requires.
    ///
    /// ```
    /// use lariat::sql::Path;
    ///
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let path: Path = "spec.containers[*].image".parse()?;
    /// let pod = serde_json::json!({"spec": {"containers": [{"image": "nginx"}, {"image": "envoy"}]}});
    /// assert_eq!(path.find(&pod)?, ["nginx", "envoy"]);
    /// # Ok(()) }
    /// # example().unwrap();
    /// ```
    pub fn find<'a>(&self, object: &'a Json) -> Result<Vec<&'a Json>, &'static str> {
        let mut found = vec![object];
        for step in &self.steps {
            let mut next = Vec::with_capacity(found.len());
            for value in found {
                step.follow(value, &mut next)?;
            }
            found = next;
        }
        // A null member means the same as a missing one.
        found.retain(|value| !value.is_null());
        Ok(found)
    }
}

impl PathStep {
    fn follow<'a>(&self, value: &'a Json, found: &mut Vec<&'a Json>) -> Result<(), &'static str> {
        match (self, value) {
            // `null` on the way means the same as an absent member.
            (_, Json::Null) => {}
            (Self::Member(name), Json::Object(members)) => found.extend(members.get(name)),
            (Self::Member(_), _) => return Err("a part of its path is not an object"),
            // An index past the end finds nothing, like a missing member.
            (Self::Element(index), Json::Array(elements)) => found.extend(elements.get(*index)),
            (Self::All, Json::Array(elements)) => found.extend(elements),
            (Self::First(path, text), Json::Array(elements)) => {
                let is = |element: &&Json| {
                    let mut path = path.iter();
                    let member = path.try_fold(*element, |value, name| value.get(name));
                    member.and_then(Json::as_str) == Some(text)
                };
                found.extend(elements.iter().find(is));
            }
            _ => return Err("a part of its path is not an array"),
        }
        Ok(())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The error of a text that is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path:?} is not a path into an object: {reason}")]
pub struct PathError {
    path: String,
    reason: &'static str,
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let failed = |reason| PathError {
            path: text.to_owned(),
            reason,
        };
        // So that a JSONPath of a printer column is a path as it stands.
        let without_root = text.strip_prefix('$').unwrap_or(text);
        let trimmed = without_root.strip_prefix('.').unwrap_or(without_root);
        let mut steps = Vec::new();
        let mut rest = trimmed;
        while !rest.is_empty() {
            rest = if let Some(inside) = rest.strip_prefix('[') {
                let (step, after) = bracket(inside).map_err(failed)?;
                steps.push(step);
                after
            } else {
                let name = if steps.is_empty() {
                    rest
                } else {
                    rest.strip_prefix('.')
                        .ok_or_else(|| failed("a dot or a bracket is missing"))?
                };
                let end = name.find(['.', '[']).unwrap_or(name.len());
                if end == 0 {
                    return Err(failed("a member has no name"));
                }
                // Probably a mistyped bracket; as a name it would silently find nothing.
                if name[..end].contains(']') {
                    return Err(failed("a bracket is closed that is not open"));
                }
                steps.push(PathStep::Member(name[..end].to_owned()));
                &name[end..]
            };
        }
        if steps.is_empty() {
            return Err(failed("it is empty"));
        }
        let text = trimmed.to_owned();
        Ok(Self { text, steps })
    }
}

/// Reads the content of brackets; returns it and the rest after them.
fn bracket(inside: &str) -> Result<(PathStep, &str), &'static str> {
    const OPEN: &str = "a bracket is not closed";
    if let Some(quote) = inside.chars().next().filter(|c| matches!(c, '\'' | '"')) {
        let (name, rest) = inside[1..]
            .split_once(quote)
            .ok_or("a quote is not closed")?;
        let rest = rest.strip_prefix(']').ok_or(OPEN)?;
        return Ok((PathStep::Member(name.to_owned()), rest));
    }
    if let Some(condition) = inside.strip_prefix("?(") {
        let (condition, rest) = condition.split_once(")]").ok_or(OPEN)?;
        return Ok((first(condition)?, rest));
    }
    let (text, rest) = inside.split_once(']').ok_or(OPEN)?;
    let step = match text {
        "" => return Err("there is nothing in its brackets"),
        "*" => PathStep::All,
        // A number in quotes is the name of a member, and was read above.
        _ if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            PathStep::Element(text.parse().map_err(|_| "its index is too large")?)
        }
        name => PathStep::Member(name.to_owned()),
    };
    Ok((step, rest))
}

/// Reads a condition such as `@.type=="Ready"`.
fn first(condition: &str) -> Result<PathStep, &'static str> {
    const FORM: &str = "a condition has the form [?(@.type==\"Ready\")]";
    let (path, text) = condition.split_once("==").ok_or(FORM)?;
    let path = path.trim().strip_prefix("@.").ok_or(FORM)?;
    let text = text.trim();
    let quoted = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    let text = quoted('"').or_else(|| quoted('\'')).ok_or(FORM)?;
    let path: Vec<String> = path.split('.').map(str::to_owned).collect();
    if path.iter().any(String::is_empty) {
        return Err(FORM);
    }
    Ok(PathStep::First(path, text.to_owned()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(path: &str, object: &Json) -> Result<Vec<Json>, &'static str> {
        let path: Path = path.parse().unwrap();
        Ok(path.find(object)?.into_iter().cloned().collect())
    }

    #[test]
    fn paths_lead_through_members_elements_and_arrays() {
        let object = json!({
            "metadata": {"annotations": {"a.b/c": "x"}},
            "spec": {"containers": [{"image": "one", "ports": [{"p": 1}, {"p": 2}]}, {"image": "two"}, {"ports": [{"p": 3}]}]},
            "status": {"conditions": [{"type": "A", "status": "no"}, {"type": "Ready", "status": "yes"}]},
        });
        for (path, values) in [
            ("metadata.annotations[a.b/c]", json!(["x"])),
            ("metadata.annotations['a.b/c']", json!(["x"])),
            ("metadata[\"annotations\"][\"a.b/c\"]", json!(["x"])),
            (".spec.containers[0].image", json!(["one"])),
            ("$.spec.containers[*].image", json!(["one", "two"])),
            ("spec.containers[*].ports[*].p", json!([1, 2, 3])),
            ("spec.containers[7].image", json!([])),
            ("spec.volumes[*].name", json!([])),
            (
                "status.conditions[?(@.type==\"Ready\")].status",
                json!(["yes"]),
            ),
            ("status.conditions[?(@.type=='None')].status", json!([])),
        ] {
            assert_eq!(found(path, &object).map(Json::Array), Ok(values), "{path}");
        }
    }

    #[test]
    fn what_is_not_as_the_path_says_is_an_error_and_what_is_missing_is_none() {
        let object = json!({"spec": {"nodeName": "n", "list": [1], "none": null}});
        assert!(found("spec.nodeName.deeper", &object).is_err());
        assert!(found("spec.nodeName[0]", &object).is_err());
        assert!(found("spec.list.member", &object).is_err());
        assert_eq!(found("spec.none.member[0]", &object), Ok(Vec::new()));
        assert_eq!(found("spec.none", &object), Ok(Vec::new()));
    }

    #[test]
    fn texts_that_are_no_path_are_refused_with_a_reason() {
        for text in [
            "",
            ".",
            "a..b",
            "a.",
            "a[",
            "a[0",
            "a['b]",
            "a[]",
            "a]b",
            "a[0]b",
            "a[?(@.b)]",
            "a[?(@.b==c)]",
        ] {
            assert!(text.parse::<Path>().is_err(), "{text}");
        }
    }
}
