//! Selectors of devices.

use std::sync::{Arc, LazyLock};

use super::lists::check_list;
use crate::expressions::{Checked, Dimensions, Environment, Object, Type, Variables, quantity};
use crate::structural::check_expression_with_cost;
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

/// How large what expressions know of a device can be.
static SIZES: LazyLock<Dimensions> = LazyLock::new(|| {
    let by_domain = |value: Dimensions| {
        let of_domain = Dimensions::map(value, MOST_ATTRIBUTES).with_longest_key(LONGEST_NAME);
        let of_domain = of_domain.with_names();
        Dimensions::map(of_domain, MOST_ATTRIBUTES).with_longest_key(LONGEST_DOMAIN)
    };
    let fields = [
        ("driver", Dimensions::scalar(LONGEST_DOMAIN, 2)),
        ("allowMultipleAllocations", Dimensions::scalar(1, 4)),
        (
            "attributes",
            by_domain(Dimensions::scalar(LONGEST_VALUE, 1)),
        ),
        ("capacity", by_domain(Dimensions::scalar(0, 8))),
    ];
    let fields = fields.map(|(name, sizes)| (name.to_owned(), sizes));
    Dimensions::object(fields.into(), 2)
});

/// The highest cost of a selector.
// `CELSelectorExpressionMaxCost`.
const MOST_COST: u64 = 1_000_000;
// `ResourceSliceMaxAttributesAndCapacitiesPerDevice`.
const MOST_ATTRIBUTES: u64 = 32;
// `DeviceMaxIDLength`.
const LONGEST_NAME: u64 = 32;
// `DeviceMaxDomainLength`.
const LONGEST_DOMAIN: u64 = 63;
// `DeviceAttributeMaxValueLength`.
const LONGEST_VALUE: u64 = 64;

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
    let variables = Variables {
        dimensions: &SIZES,
        only: Some("device"),
    };
    match check_expression_with_cost(at.text(), &DEVICE, variables) {
        Err(wrong) => causes.invalid_as(at, at.text(), &format!("compilation failed: {wrong}")),
        // An attribute may be a bool when the expression is evaluated, so the server accepts it too.
        Ok(Some(Checked {
            kind: Type::Bool | Type::Any,
            cost,
        })) => {
            if cost > MOST_COST {
                causes.forbidden(at, "too complex, exceeds cost limit");
            }
        }
        Ok(None) => {}
        Ok(Some(Checked { kind: found, .. })) => {
            let found = found.named();
            let detail = format!("must evaluate to bool or the unknown type, not {found}");
            causes.invalid_as(at, at.text(), &detail);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::validation::testing::check_created;

    /// Selectors, and how often a genuine server would let an expression evaluate each.
    const REPEATED: [(&str, u32); 29] = [
        ("device.driver == 'a'", 142855),
        ("device.attributes['dra.example.com'].a == 'x'", 111109),
        (
            "cel.bind(d, device.attributes['dra.example.com'], d.a && d.b == 'x')",
            45454,
        ),
        ("device.attributes.all(k, k == 'abcdefghijklmnop')", 5025),
        (
            "device.attributes.all(k, device.attributes[k].all(j, j == 'abcdefghijkl'))",
            156,
        ),
        (
            "device.attributes.all(k, device.attributes[k].all(j, device.attributes.all(l, l == k)))",
            2,
        ),
        (
            "device.attributes.all(k, device.capacity.all(j, device.attributes.all(l, k == j && l == j)))",
            1,
        ),
        (
            "device.attributes.all(k, device.capacity.all(j, device.attributes.all(l, device.driver.matches(k) && l == j)))",
            0,
        ),
        ("device.capacity['a'].b.isGreaterThan(quantity('1'))", 99998),
        (
            "device.capacity['a'].all(k, device.capacity['a'][k].compareTo(quantity('10')) > 0)",
            2777,
        ),
        ("device.driver.matches('^a.*b$')", 49999),
        ("[1,2,3].all(x, [1,2,3,4,5].all(y, x > y))", 6802),
        ("lists.range(100000).all(x, x > 0)", 1),
        ("lists.range(200000).all(x, x > 0)", 0),
        ("string(device.attributes['a'].b) == 'abc'", 62499),
        ("device.attributes['a'].b.matches('a*')", 66665),
        (
            "device.attributes['dra.example.com'].list in ['a','b']",
            49999,
        ),
        (
            "device.attributes['a'].b.lowerAscii().contains('abcdefg')",
            45454,
        ),
        ("device.attributes['a']['b'] == device.driver", 58822),
        (
            "device.attributes.exists(d, v, v.exists(n, w, w == 'abc'))",
            157,
        ),
        (
            "device.attributes.exists(d, v, v.exists(n, w, device.attributes.exists(e, x, x.exists(o, y, y == w && o == n))))",
            0,
        ),
        (
            "device.attributes.map(d, d).exists(x, device.attributes.map(d, d).exists(y, x == y))",
            36,
        ),
        ("device.?attributes['a'].?b.orValue('x') == 'abc'", 99998),
        ("device.allowMultipleAllocations", 166664),
        ("device.attributes['a'].b", 124998),
        (
            "device.attributes['a'].?b.orValue('x').matches('^[a-z]+$')",
            0,
        ),
        (
            "device.attributes['x'].size() + device.capacity.size() > 3",
            76922,
        ),
        ("'a'.replace('', device.driver).matches('abc')", 49999),
        (
            "device.attributes['a'].b.split(',').all(x, x.contains('abcdef'))",
            0,
        ),
    ];

    #[test]
    fn selectors_cost_what_a_genuine_server_estimates() {
        let too_complex =
            "spec.selectors[0].cel.expression: Forbidden: too complex, exceeds cost limit";
        let check = |text: &str, times: u32, expected: &[&str]| {
            let text = format!("lists.range({times}).all(q, {text})");
            let class = json!({"spec": {"selectors": [{"cel": {"expression": text}}]}});
            check_created("resource.k8s.io/v1", "DeviceClass", class, expected);
        };
        for (text, times) in REPEATED {
            check(text, times, &[]);
            check(text, times + 1, &[too_complex]);
        }
    }
}
