//! Parts of built-in objects that are written on their own.

use std::collections::HashMap;

use lariat_apimachinery::cause::StatusCause;
use lariat_apimachinery::object::Object;
use serde_json::Value;

use super::part::Part;

/// Takes from `sent` only the written part.
pub(super) fn restrict(part: Part, old: &Object, sent: &Object) -> Object {
    let mut new = old.clone();
    match part {
        Part::Ephemeral => copy(sent, &mut new, ["spec", "ephemeralContainers"]),
        Part::Approval => copy(sent, &mut new, ["status", "conditions"]),
        Part::Resize => resize(sent, &mut new),
        Part::Main | Part::Status | Part::Finalize => {}
    }
    new
}

fn copy(from: &Object, to: &mut Object, [part, member]: [&str; 2]) {
    let value = from.get(part).and_then(|part| part.get(member)).cloned();
    let part = to
        .entry(part)
        .or_insert_with(|| Value::Object(Object::new()));
    let Some(part) = part.as_object_mut() else {
        return;
    };
    match value {
        Some(value) => part.insert(member.to_owned(), value),
        None => part.remove(member),
    };
}

/// Takes over resources, of containers and of the whole Pod, which is what a resize may change.
///
/// Other containers are taken over too, and refused later.
fn resize(sent: &Object, new: &mut Object) {
    let lists = ["containers", "initContainers"];
    let same = |member: &&str| list(sent, "spec", member).len() == list(new, "spec", member).len();
    if !lists.iter().all(same) {
        new.insert("spec".into(), sent.get("spec").cloned().unwrap_or_default());
        return;
    }
    copy(sent, new, ["spec", "resources"]);
    for member in lists {
        let wanted = list(sent, "spec", member);
        let mut pairs = wanted.iter().zip(list(new, "spec", member));
        if pairs.any(|(wanted, is)| wanted["name"] != is["name"]) {
            copy(sent, new, ["spec", member]);
            continue;
        }
        let containers = new
            .get_mut("spec")
            .and_then(|spec| spec.get_mut(member)?.as_array_mut());
        for (container, wanted) in containers.into_iter().flatten().zip(wanted) {
            let Some(container) = container.as_object_mut() else {
                continue;
            };
            for part in ["resources", "resizePolicy"] {
                match wanted.get(part) {
                    Some(value) => container.insert(part.to_owned(), value.clone()),
                    None => container.remove(part),
                };
            }
        }
    }
}

/// Finds what is wrong with the change of a part.
pub(super) fn check(part: Part, old: &Object, new: &Object) -> Vec<StatusCause> {
    match part {
        Part::Approval => approval(old, new),
        _ => Vec::new(),
    }
}

/// Returns the first item of a list for each value of a member.
fn by_member<'a>(items: &'a [Value], member: &str) -> HashMap<&'a Value, &'a Value> {
    let mut first = HashMap::with_capacity(items.len());
    for item in items {
        first.entry(&item[member]).or_insert(item);
    }
    first
}

fn list<'a>(object: &'a Object, part: &str, member: &str) -> &'a [Value] {
    let list = object
        .get(part)
        .and_then(|part| part.get(member)?.as_array());
    list.map_or(&[], Vec::as_slice)
}

/// What was approved or denied stays so.
fn approval(old: &Object, new: &Object) -> Vec<StatusCause> {
    let conditions = |object| list(object, "status", "conditions");
    let now = by_member(conditions(new), "type");
    let mut causes = Vec::new();
    for condition in conditions(old) {
        let kind = &condition["type"];
        if !now.contains_key(kind) {
            let message = format!("updates may not remove a condition of type {kind}");
            causes.push(StatusCause::forbidden("status.conditions", &message));
        }
    }
    let has = |kind: &str| now.contains_key(&Value::from(kind));
    if has("Approved") && has("Denied") {
        let message = "Approved and Denied conditions are mutually exclusive";
        let value = Value::from("Denied");
        causes.push(StatusCause::invalid("status.conditions", &value, message));
    }
    causes
}
