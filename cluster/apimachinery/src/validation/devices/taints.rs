//! Taints of devices, and what tolerates them.

use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::formats;

const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

pub(super) fn check_taint(taint: &Field<'_>, causes: &mut Causes) {
    causes.check_format(&taint.get("key"), formats::qualified_name);
    causes.check_format(&taint.get("value"), formats::label_value);
    causes.check_one_of(&taint.get("effect"), &EFFECTS);
}

pub(super) fn check_toleration(toleration: &Field<'_>, causes: &mut Causes) {
    let [key, operator, value, effect] =
        ["key", "operator", "value", "effect"].map(|name| toleration.get(name));
    if !key.is_void() {
        causes.check_format(&key, formats::qualified_name);
    }
    match operator.text() {
        "Exists" if value.is_void() => {}
        "Exists" => causes.invalid(&value, "must be empty for operator `Exists`"),
        "Equal" => causes.check_format(&value, formats::label_value),
        // Also for a missing operator, which is reported as required.
        _ => causes.check_one_of(&operator, &["Equal", "Exists"]),
    }
    if !effect.is_void() {
        causes.check_supported(&effect, &EFFECTS);
    }
}
