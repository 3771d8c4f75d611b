//! Selectors of devices.

use std::sync::{Arc, LazyLock};

use super::lists::check_list;
use crate::expressions::{Environment, Object, Type, quantity};
use crate::structural::check_expression;
use crate::validation::causes::Causes;
use crate::validation::field::Field;

/// The variables of expressions about a device.
// `newCompiler` in `k8s.io/dynamic-resource-allocation/cel/compile.go`.
static DEVICE: LazyLock<Environment> = LazyLock::new(|| {
    let by_domain = |kind| Type::map(Type::Text, Type::map(Type::Text, kind));
    let fields = [
        ("driver", Type::Text),
        ("allowMultipleAllocations", Type::Bool),
        // Drivers choose the types of attributes.
        ("attributes", by_domain(Type::Any)),
        ("capacity", by_domain(quantity())),
    ];
    let fields = fields.map(|(name, kind)| (name.to_owned(), kind));
    let device = Object::new("kubernetes.DRADevice", fields);
    let mut environment = Environment::with_bind();
    environment.declare("device", Type::Object(Arc::new(device)));
    environment
});

const MOST: usize = 32;
const MOST_BYTES: usize = 10 << 10;

/// Checks a list of selectors.
pub(super) fn check_selectors(selectors: &Field<'_>, causes: &mut Causes) {
    check_list(selectors, MOST, causes, |selector, causes| {
        let cel = selector.get("cel");
        if cel.is_set() {
            check_cel(&cel.get("expression"), causes);
        } else {
            causes.required(&cel, "");
        }
    });
}

fn check_cel(at: &Field<'_>, causes: &mut Causes) {
    if at.text().len() > MOST_BYTES {
        causes.too_long(at, MOST_BYTES);
        return;
    }
    match check_expression(at.text(), &DEVICE) {
        Err(wrong) => causes.invalid_as(at, at.text(), &format!("compilation failed: {wrong}")),
        // An attribute may be a bool when the expression is evaluated, so the server accepts it too.
        Ok(None | Some(Type::Bool | Type::Any)) => {}
        Ok(Some(found)) => {
            let found = found.named();
            let detail = format!("must evaluate to bool or the unknown type, not {found}");
            causes.invalid_as(at, at.text(), &detail);
        }
    }
}
