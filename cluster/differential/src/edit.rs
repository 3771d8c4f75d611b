//! Changes of documents, which are also patches of every type.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Sets or removes one member.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Edit {
    /// The names and indexes that lead to it.
    pub path: Vec<String>,
    /// Its value; none removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

impl Edit {
    /// Sets a member.
    #[must_use]
    pub fn set(path: &[&str], value: Value) -> Self {
        Self {
            path: path.iter().map(|each| (*each).to_owned()).collect(),
            value: Some(value),
        }
    }

    /// Removes a member.
    #[must_use]
    pub fn remove(path: &[&str]) -> Self {
        Self {
            value: None,
            ..Self::set(path, Value::Null)
        }
    }

    /// Carries the change out, and makes the objects on the way that are missing.
    pub fn apply(&self, document: &mut Value) {
        let Some((last, way)) = self.path.split_last() else {
            *document = self.value.clone().unwrap_or_default();
            return;
        };
        let mut at = document;
        for name in way {
            if at.is_null() {
                *at = json!({});
            }
            // A change whose way leads through a text or past the end of a list does nothing.
            at = match at {
                Value::Object(object) => object.entry(name.as_str()).or_insert(Value::Null),
                Value::Array(list) => match name
                    .parse()
                    .ok()
                    .and_then(|index: usize| list.get_mut(index))
                {
                    Some(item) => item,
                    None => return,
                },
                _ => return,
            };
        }
        if at.is_null() {
            *at = json!({});
        }
        match (at, &self.value) {
            (Value::Object(object), Some(value)) => {
                drop(object.insert(last.clone(), value.clone()))
            }
            (Value::Object(object), None) => drop(object.remove(last)),
            (Value::Array(list), value) => replace_item(list, last, value.as_ref()),
            _ => {}
        }
    }

    /// Returns the merge patch that has this effect on a document.
    #[must_use]
    pub fn as_merge(&self, document: &Value) -> Value {
        let is_index = |name: &String| name.parse::<usize>().is_ok();
        let Some(index) = self.path.iter().position(is_index) else {
            return nested(&self.path, self.value.clone().unwrap_or_default());
        };
        // Lists are replaced as a whole.
        let mut changed = document.clone();
        self.apply(&mut changed);
        let list = &self.path[..index];
        let pointer = format!("/{}", list.join("/"));
        nested(list, changed.pointer(&pointer).cloned().unwrap_or_default())
    }

    /// Returns the operation of a JSON patch that has this effect.
    #[must_use]
    pub fn as_operation(&self, replaces: bool) -> Value {
        let escape = |name: &String| name.replace('~', "~0").replace('/', "~1");
        let names: Vec<String> = self.path.iter().map(escape).collect();
        let path = format!("/{}", names.join("/"));
        match &self.value {
            Some(value) if replaces => json!({"op": "replace", "path": path, "value": value}),
            Some(value) => json!({"op": "add", "path": path, "value": value}),
            None => json!({"op": "remove", "path": path}),
        }
    }
}

fn replace_item(list: &mut Vec<Value>, name: &str, value: Option<&Value>) {
    let Ok(index) = name.parse::<usize>() else {
        // A member of a list has no name.
        return;
    };
    match value {
        Some(value) if index < list.len() => list[index] = value.clone(),
        Some(value) => list.push(value.clone()),
        None if index < list.len() => drop(list.remove(index)),
        None => {}
    }
}

fn nested(path: &[String], value: Value) -> Value {
    path.iter().rev().fold(value, |inner, name| {
        Value::Object(Map::from_iter([(name.clone(), inner)]))
    })
}

/// Returns every path of a document, but that of the document itself.
#[must_use]
pub fn paths(document: &Value) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    walk(document, &mut Vec::new(), &mut found);
    found
}

fn walk(value: &Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let members: Vec<(String, &Value)> = match value {
        Value::Object(object) => object
            .iter()
            .map(|(name, value)| (name.clone(), value))
            .collect(),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .map(|(index, item)| (index.to_string(), item))
            .collect(),
        _ => return,
    };
    for (name, value) in members {
        path.push(name);
        found.push(path.clone());
        walk(value, path, found);
        path.pop();
    }
}

/// Returns the value at a path.
#[must_use]
pub fn at<'a>(document: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(document, |value, name| match value {
        Value::Object(object) => object.get(name),
        Value::Array(list) => list.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_is_a_change_and_patches_of_the_same_effect() {
        let document = json!({"spec": {"a": 1, "list": [{"x": 1}, {"x": 2}]}});
        let cases = [
            (
                Edit::set(&["spec", "a"], json!(2)),
                "/spec/a",
                json!({"spec": {"a": 2}}),
            ),
            (
                Edit::remove(&["spec", "a"]),
                "/spec/a",
                json!({"spec": {"a": null}}),
            ),
            (
                Edit::set(&["new", "b"], json!(1)),
                "/new/b",
                json!({"new": {"b": 1}}),
            ),
            (
                Edit::remove(&["spec", "list", "0"]),
                "/spec/list/0",
                json!({"spec": {"list": [{"x": 2}]}}),
            ),
            (
                Edit::set(&["spec", "list", "1", "y"], json!(3)),
                "/spec/list/1/y",
                json!({"spec": {"list": [{"x": 1}, {"x": 2, "y": 3}]}}),
            ),
        ];
        for (edit, path, merge) in cases {
            assert_eq!(edit.as_merge(&document), merge, "{edit:?}");
            assert_eq!(edit.as_operation(false)["path"], path, "{edit:?}");
            let mut changed = document.clone();
            edit.apply(&mut changed);
            assert_eq!(
                at(&changed, &edit.path).is_some(),
                edit.value.is_some() || path.ends_with("/0"),
                "{changed}"
            );
        }
    }
}
