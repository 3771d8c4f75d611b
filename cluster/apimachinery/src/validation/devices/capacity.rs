//! Requests of a part of a capacity.

use super::lists::check_set;
use crate::go_text;
use crate::quantity::Quantity;
use crate::validation::causes::Causes;
use crate::validation::field::Field;
use crate::validation::resources::amount;

const MOST_OPTIONS: usize = 10;

/// Checks the policy for requests of a capacity.
pub(super) fn check_policy(capacity: &Field<'_>, policy: &Field<'_>, causes: &mut Causes) {
    let (values, range) = (policy.get("validValues"), policy.get("validRange"));
    let default = policy.get("default");
    match (!values.is_void(), range.is_set()) {
        (true, true) => {
            let detail = "exactly one policy can be specified, cannot specify \"validValues\" and \
                \"validRange\" at the same time";
            causes.forbidden(policy, detail);
        }
        (false, false) => {}
        // Only a missing default is reported then, since everything else is compared with it.
        (listed, _) if !default.is_set() => {
            let member = if listed { "validValues" } else { "validRange" };
            causes.required(&default, &format!("required when {member} is defined"));
        }
        (true, false) => check_values(&values, amount(&default), amount(capacity), causes),
        (false, true) => Range {
            at: range,
            default: amount(&default),
            capacity: amount(capacity),
        }
        .check(causes),
    }
}

fn check_values(values: &Field<'_>, default: Quantity, capacity: Quantity, causes: &mut Causes) {
    let items: Vec<Field<'_>> = values.items().collect();
    for pair in items.windows(2) {
        if amount(&pair[0]) > amount(&pair[1]) {
            let shown = amount(&pair[1]).to_string();
            causes.invalid_as(&pair[1], shown, "values must be sorted in ascending order");
        }
    }
    // `quantityKey` is the value as a whole number, so duplicates are found by that.
    let key = |each: &Field<'_>| go_text::quoted(&amount(each).rounded().to_string());
    check_set(values, MOST_OPTIONS, causes, key, |each, causes| {
        let option = amount(each);
        if option > capacity {
            let detail = format!("option is larger than capacity value: {capacity}");
            causes.invalid_as(each, option.to_string(), &detail);
        }
    });
    // What is too long is not looked into, so nothing in it is found.
    let is_short = items.len() <= MOST_OPTIONS;
    if !is_short || !items.iter().any(|each| amount(each) == default) {
        let detail = "default value is not valid according to the requestPolicy";
        causes.invalid_as(values, default.to_string(), detail);
    }
}

/// A range of valid requests.
struct Range<'a> {
    at: Field<'a>,
    default: Quantity,
    capacity: Quantity,
}

impl Range<'_> {
    fn check(&self, causes: &mut Causes) {
        let [min, max, step] = ["min", "max", "step"].map(|name| self.at.get(name));
        // `validateRequestPolicyRange`: without a lower end no other rule makes sense.
        if !min.is_set() {
            causes.required(&min, "required when validRange is defined");
            return;
        }
        let (least, capacity, default) = (amount(&min), self.capacity, self.default);
        let mut refuse = |at: &Field<'_>, shown: Quantity, broken: bool, detail: String| {
            if broken {
                causes.invalid_as(at, shown.to_string(), &detail);
            }
        };
        let detail = format!("min is larger than capacity value: {capacity}");
        refuse(&min, least, least > capacity, detail);
        let detail = format!("default is less than min: {least}");
        refuse(&min, default, default < least, detail);
        if max.is_set() {
            let most = amount(&max);
            let detail = format!("min is larger than max: {most}");
            refuse(&max, least, least > most, detail);
            let detail = format!("max is larger than capacity value: {capacity}");
            refuse(&max, most, most > capacity, detail);
            let detail = format!("default is more than max: {most}");
            refuse(&max, default, default > most, detail);
        }
        if !step.is_set() {
            return;
        }
        let size = amount(&step);
        // The first value above the minimum must exist.
        let added = least.plus(size);
        let detail = format!("one step {added} is larger than capacity value: {capacity}");
        refuse(&step, size, added > capacity, detail);
        let bounds = [Some(default), max.is_set().then(|| amount(&max))];
        for value in bounds.into_iter().flatten() {
            let detail = format!("value is not a multiple of a given step ({size}) from ({least})");
            refuse(&step, value, !is_step(value, least, size), detail);
        }
    }
}

/// Returns whether a value is some whole steps above another one.
fn is_step(value: Quantity, least: Quantity, step: Quantity) -> bool {
    // Go computes with int64, so overflow wraps. A step of zero is no step of anything.
    let distance = value.rounded().wrapping_sub(least.rounded());
    distance.checked_rem(step.rounded()) == Some(0)
}
