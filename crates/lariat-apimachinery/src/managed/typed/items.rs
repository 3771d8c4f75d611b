//! What identifies the items of a list.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::managed::path::Step;
use crate::schema::{ListKind, TypeRef};

/// Returns the step to an item of a list that is not atomic.
pub(super) fn step_to(kind: &ListKind, item: TypeRef<'_>, value: &Value) -> Result<Step, String> {
    match kind {
        ListKind::Set => match value {
            Value::Array(_) | Value::Object(_) => {
                Err("associative lists as values are not supported".to_owned())
            }
            _ => Ok(Step::value(value)),
        },
        ListKind::Map(keys) => keyed(keys, item, value),
        ListKind::Atomic => Err("an atomic list has no items of its own".to_owned()),
    }
}

fn keyed(keys: &[Cow<'static, str>], item: TypeRef<'_>, value: &Value) -> Result<Step, String> {
    let Value::Object(members) = value else {
        return Err("associative list with keys may not have non-map elements".to_owned());
    };
    let mut found = Map::new();
    for key in keys {
        let default = || item.field(key)?.default.clone();
        if let Some(value) = members.get(&**key).cloned().or_else(default) {
            found.insert(key.clone().into_owned(), value);
        }
    }
    if found.is_empty() {
        return Err(format!(
            "associative list with keys has an element that omits key field {:?} (and doesn't have \
             default value)",
            keys.first().map_or("", |key| key)
        ));
    }
    Ok(Step::keys(found))
}

/// The items of a list by the steps to them, in order; what cannot be identified is left out.
#[derive(Debug, Default)]
pub(super) struct Items<'a> {
    list: Vec<(Step, Vec<&'a Value>)>,
    /// The places of the steps, for lists that are too long to be searched.
    places: HashMap<Step, usize>,
}

/// Shorter lists are searched from the front.
const SHORT: usize = 16;

impl<'a> Items<'a> {
    pub(super) fn of(kind: &ListKind, item: TypeRef<'_>, values: &'a [Value]) -> Self {
        let mut items = Self {
            list: Vec::with_capacity(values.len()),
            places: HashMap::new(),
        };
        for value in values {
            let Ok(step) = step_to(kind, item, value) else {
                continue;
            };
            match items.place(&step) {
                Some(at) => items.list[at].1.push(value),
                None => items.push(step, value),
            }
        }
        items
    }

    fn push(&mut self, step: Step, value: &'a Value) {
        self.list.push((step, vec![value]));
        match self.list.len() {
            ..SHORT => {}
            SHORT => {
                let places = self.list.iter().enumerate();
                self.places = places.map(|(at, (step, _))| (step.clone(), at)).collect();
            }
            length => drop(
                self.places
                    .insert(self.list[length - 1].0.clone(), length - 1),
            ),
        }
    }

    fn place(&self, step: &Step) -> Option<usize> {
        match self.list.len() {
            ..SHORT => self.list.iter().position(|(each, _)| each == step),
            _ => self.places.get(step).copied(),
        }
    }

    pub(super) fn get(&self, step: &Step) -> &[&'a Value] {
        self.place(step).map_or(&[], |at| &self.list[at].1)
    }

    pub(super) fn has(&self, step: &Step) -> bool {
        self.place(step).is_some()
    }

    pub(super) fn list(&self) -> &[(Step, Vec<&'a Value>)] {
        &self.list
    }
}
