//! ControllerRevisions.

use serde_json::Value;

use crate::validation::causes::Causes;
use crate::validation::context::Context;

pub(in crate::validation) fn controller_revision(context: &Context<'_>, causes: &mut Causes) {
    causes.check_not_negative(&context.get("revision"));
    let data = context.get("data");
    // `ValidateControllerRevisionUpdate` demands that the data stay, and then need not look into them.
    if let Some(old) = context.old("data") {
        causes.check_immutable(&data, &old);
        return;
    }
    match data.value() {
        Value::Object(_) => {}
        Value::Null => causes.required(&data, "data is mandatory"),
        _ => causes.required(&data, "data must be a valid JSON object"),
    }
}
